// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/prng.h"
#include "plan/model/round_time.h"
#include "plan/output/prediction_modes.h"
#include "swarm/leases/batch_choice.h"
#include "swarm/shares/bound.h"
#include "train/run/run.h"

/// plan/ may not see average/, and counts peers by groups: both must mean the same bound.
namespace tw::cli {
namespace {

/// Site k of provider p, and between any two of them what the profile says.
market::Site site(std::size_t k) { return {"own", "place" + std::to_string(k), ""}; }

struct Testbed {
  std::vector<plan::PeerGroup> peers;
  market::NetworkProfile network;
  std::vector<swarm::Participant> participants;
};

Testbed testbed(Prng& random) {
  Testbed testbed;
  const std::size_t groups = 1 + random.below(4);
  std::vector<double> cards;
  for (std::size_t g = 0; g < groups; ++g) {
    testbed.peers.push_back({static_cast<int>(1 + random.below(4)), "T4", site(g)});
    cards.push_back(1e7 * (1 + random.below(100)));
    testbed.network.set(site(g), site(g),
                        {.rtt_s = 0.001, .stream_bytes_per_s = cards[g], .path_bytes_per_s = cards[g]});
  }
  if (count_of(testbed.peers) < 2) testbed.peers[0].count = 2;
  std::vector<std::vector<double>> pairs(groups, std::vector<double>(groups));
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t h = 0; h < groups; ++h) {
      pairs[g][h] = g == h ? 0 : 1e6 * (1 + random.below(100));
      if (g != h) testbed.network.set(site(g), site(h), {.rtt_s = 0.1, .stream_bytes_per_s = pairs[g][h]});
    }
  }
  std::vector<std::size_t> group_of;
  for (std::size_t g = 0; g < groups; ++g) group_of.insert(group_of.end(), testbed.peers[g].count, g);
  for (std::size_t i = 0; i < group_of.size(); ++i) {
    const double card = cards[group_of[i]];
    swarm::Participant participant{.peer = PeerId{i + 1}};
    participant.bandwidth = {.up_bytes_per_s = card, .down_bytes_per_s = card};
    for (std::size_t j = 0; j < group_of.size(); ++j) {
      if (group_of[i] != group_of[j])
        participant.bandwidth.slow.push_back({PeerId{j + 1}, pairs[group_of[i]][group_of[j]]});
    }
    testbed.participants.push_back(std::move(participant));
  }
  return testbed;
}

TEST(PlanBound, is_that_of_averaging) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng random(seed);
    const Testbed b = testbed(random);
    const plan::Workload workload{.model = {.params_m = 100}, .bytes_per_param = 2, .streams = 1};
    const double planned = wire_seconds(workload, b.peers, b.network);
    EXPECT_NEAR(planned, swarm::bound_seconds(200'000'000, b.participants), 1e-6 * planned)
        << "seed " << seed << ": " << to_string(b.peers);
  }
}

TEST(PlanBound, of_what_is_left_open_is_the_default_of_a_run) {
  const train::BatchOptions batch;
  EXPECT_EQ(plan::kUsualBatch, static_cast<double>(batch.size.value()));
  EXPECT_EQ(plan::kMostBatch, static_cast<double>(batch.bounds.most));
  EXPECT_EQ(plan::kFragments, train::ModeOptions().fragments);
}

TEST(PlanBound, of_a_batch_is_what_leaders_choose_who_measure_what_was_predicted) {
  plan::NamedWork work;
  work.target_batch_size = 64;
  const plan::Workload workload{.model = plan::Models::built_in().find("CONV").value()};
  const auto points =
      predict_modes(work, workload, plan::parse_peers("4xT4@gc:us;4xT4@gc:eu").value()).value();
  ASSERT_EQ(points.size(), 8U);
  for (std::size_t at = 4; at < points.size(); ++at) {
    const bool overlap = points[at].mode == "delayed" || points[at].mode == "streaming";
    const swarm::TargetBatch batch{.target_batch_size = 64,
                                   .microbatch = 1,
                                   .overlap = overlap,
                                   .chosen = swarm::BatchBounds{64, 1'000'000}};
    wire::BatchChoice measured{.samples = 64,
                               .averaging_s = points[at].prediction.comm_s.value,
                               .samples_per_s = points[at].prediction.local_sps.value};
    for (int round = 0; round < 30; ++round) measured.samples = next_batch_size(measured, batch);
    EXPECT_NEAR(static_cast<double>(measured.samples) / points[at].round_samples, 1, swarm::kDamping)
        << points[at].mode;
  }
}

}  // namespace
}  // namespace tw::cli
