// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/scenarios/test_world.h"

/// What peers have ready when a round is called, where they compute for it while the one before is averaged.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;

constexpr Round kRounds = 10;
constexpr Duration kJob = 100ms;
constexpr std::uint64_t kFloats = 4096, kSegment = 16, kScale = 1000;

/// Three peers that train copies in streaming. job: what each job of the first one's compute thread takes;
/// others: of theirs.
class Overlap {
 public:
  Overlap(Duration job, Duration others, double mbit, codec::Codec codec, std::uint64_t fragments)
      : bytes_per_s_(mbit * kMbit), codec_(codec), fragments_(fragments), world_(options(codec, fragments)) {
    world_.watch([this](PeerId, const world::Event& event) { on_event(event); });
    for (int i = 0; i < 3; ++i)
      world_.add_peer({.samples_per_s = 400,
                       .line = {mbit * kMbit, mbit * kMbit},
                       .grain = 4,
                       .job = i == 0 ? job : others});
    world_.run_until(Scheduler::kStart + 300s);
    world_.finish();
    world_.watch({});
    for (const Violation& violation : world_.referee().violations())
      ADD_FAILURE() << violation.checker << ": " << violation.message;
  }

  /// From a commit to the next call: what no peer averages in.
  double idle_s(Round round) const { return to_seconds(called_at_.at(round + 1) - committed_at_.at(round)); }

  /// From the first call to the last commit.
  double averaging_s(Round round) const { return to_seconds(committed_at_.at(round) - called_at_.at(round)); }

  /// What a link needs for two thirds of a fragment's contribution, and of its mean.
  double bound_s() const {
    const auto bytes = [](codec::Codec codec) { return encoded_bytes(codec, kSegment); };
    const double segments =
        static_cast<double>(kFloats / kSegment * kScale) / static_cast<double>(fragments_);
    return segments * static_cast<double>(bytes(codec_) + bytes(codec_of_mean(codec_))) * 2 / 3 /
           bytes_per_s_;
  }

  int lost() const { return lost_; }

  double fewest_members() const { return fewest_members_; }

  Round rounds() const { return committed_at_.empty() ? 0 : committed_at_.rbegin()->first; }

 private:
  static WorldOptions options(codec::Codec codec, std::uint64_t fragments) {
    WorldOptions options = small_world({SiteSpec{.name = "", .peers = 3}}, kRounds);
    options.run.mode = {.kind = train::Mode::streaming, .fragments = fragments};
    options.run.codec = codec;
    options.model.parameters = kFloats;
    options.segment_length = kSegment;
    options.bulk_scale = kScale;
    return options;
  }

  void on_event(const world::Event& event) {
    if (event.phase() == world::Phase::call) called_at_.try_emplace(event.round, event.at);
    if (event.phase() == world::Phase::lost) ++lost_;
    const auto* commit = event.as<event::Commit>();
    if (commit == nullptr) return;
    committed_at_[event.round] = event.at;
    fewest_members_ = std::min(fewest_members_, commit->members);
  }

  double bytes_per_s_;
  codec::Codec codec_;
  std::uint64_t fragments_;
  World world_;
  std::map<Round, Instant> called_at_, committed_at_;
  int lost_ = 0;
  std::uint64_t fewest_members_ = 3;
};

TEST(OverlapStory, keeps_peers_whose_updates_outlast_the_averaging) {
  for (const Duration job : {50ms, 200ms, 400ms}) {
    const Overlap run(job, 1ms, 1000, codec::Codec::int8, 2);
    EXPECT_EQ(run.rounds(), kRounds);
    EXPECT_EQ(run.lost(), 0) << to_seconds(job);
    EXPECT_EQ(run.fewest_members(), 3) << to_seconds(job);
  }
}

/// Latencies of a call, votes and commit, and the first segments.
constexpr double kLatency_s = 0.08;

TEST(OverlapStory, collects_a_contribution_while_the_round_before_is_averaged) {
  const Overlap run(kJob, kJob, 100, codec::Codec::fp32, 1);
  for (Round round = 4; round < kRounds; ++round)
    EXPECT_LE(run.averaging_s(round), run.bound_s() + kLatency_s) << "round " << round;
}

TEST(OverlapStory, keeps_losses_of_a_fragment_while_the_next_one_is_averaged) {
  const Overlap run(kJob, kJob, 40, codec::Codec::int8, 2);
  for (Round round = 4; round < kRounds; ++round) {
    EXPECT_LE(run.averaging_s(round), run.bound_s() + kLatency_s) << "round " << round;
    EXPECT_LE(run.idle_s(round - 1), to_seconds(kJob) * 1.2 + kLatency_s) << "one job, which takes the mean";
  }
}

/// It learns in one moment that its round was decided without it and that its late update is due.
TEST(OverlapStory, a_peer_that_stood_still_at_the_call_catches_up) {
  constexpr Round kMany = 100;
  WorldOptions options = small_world({SiteSpec{.name = "", .peers = 4}}, kMany);
  options.run.mode = {.kind = train::Mode::streaming, .fragments = 4};
  World world(options);
  std::map<PeerId, Round> reached;
  PeerId stopped{};
  world.watch([&](PeerId peer, const world::Event& event) {
    if (event.phase() == world::Phase::commit) reached[peer] = event.round;
    if (event.phase() != world::Phase::call || event.round != 10 || stopped != PeerId{}) return;
    stopped = peer;
    world.scheduler().after(Duration{}, [&] {
      world.referee().struck({FaultKind::stop, {stopped}, world.now()});
      world.stop(stopped, 6s);
    });
  });
  for (int i = 0; i < 4; ++i) world.add_peer({.samples_per_s = 400, .grain = 4, .job = 400ms});
  world.run_until(Scheduler::kStart + 600s);
  world.finish();
  world.watch({});
  for (const Violation& violation : world.referee().violations())
    ADD_FAILURE() << violation.checker << ": " << violation.message;
  EXPECT_EQ(reached[stopped], kMany);
}

}  // namespace
}  // namespace tw::sim
