// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/scenarios/test_world.h"
#include "sim/virtual/world.h"
#include "swarm/shares/bound.h"

/// How long averaging takes on lines of known capacity, and what is made of lines that change and of peers
/// that stop, in mid-round.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFloats = 4096, kSegment = 16;
constexpr std::uint64_t kMicrobatch = 4;
constexpr double kScale = 4000;  // the vector stands for one of 65.5 MB
constexpr double kBytes = kFloats * sizeof(float) * kScale;
/// Latency of a round: call, votes and commit at 10 ms one way each, and two segments of the slowest line.
constexpr double kLatency_s = 0.15;

class Averaging {
 public:
  /// `apart`: each peer is a site, and takes so many samples a second.
  explicit Averaging(const std::vector<double>& rates, Round rounds = 10, std::optional<double> apart = {},
                     codec::Codec codec = codec::Codec::fp32)
      : world_(options(rates.size(), rounds, apart.has_value(), codec)), codec_(codec) {
    world_.watch([this](PeerId peer, const world::Event& event) { on_event(peer, event); });
    for (const double mbit : rates) {
      peers_.push_back(world_.add_peer({0, apart.value_or(400), {mbit * kMbit, mbit * kMbit}}));
      lines_.push_back({peers_.back(), true, 1, {mbit * kMbit, mbit * kMbit, {}}});
    }
  }

  World& world() { return world_; }

  PeerId peer(std::size_t place) const { return peers_[place]; }

  /// Once, so long after the call of this round at the leader.
  void in_round(Round round, double after_s, std::function<void(World&)> call) {
    calls_.push_back({round, after_s, std::move(call)});
  }

  void run() {
    world_.run_until(Scheduler::kStart + 300s);
    world_.finish();
    world_.watch({});
    for (const Violation& violation : world_.referee().violations())
      ADD_FAILURE() << violation.checker << ": " << violation.message;
  }

  /// It is not looked at any more.
  void forget(PeerId peer) { forgotten_.insert(peer); }

  double bound_s() const {
    const auto bytes = [](codec::Codec codec) {
      return kScale * kFloats / kSegment * static_cast<double>(encoded_bytes(codec, kSegment));
    };
    const double both = bytes(codec_) + bytes(codec_of_mean(codec_));
    return swarm::bound_seconds(static_cast<std::uint64_t>(both / 2), lines_);
  }

  /// These lines carry so much of what they do, from the call of one round to that of another one.
  void slow_down(const std::vector<std::size_t>& places, double factor, Round from, Round to) {
    const auto set = [this, places](double part) {
      return [this, places, part](World& world) {
        for (const std::size_t place : places) {
          const wire::Bandwidth& line = lines_[place].bandwidth;
          world.paths().set_line(peers_[place], {part * line.up_bytes_per_s, part * line.down_bytes_per_s});
        }
      };
    };
    in_round(from, 0, set(factor));
    in_round(to, 0, set(1));
  }

  /// What the round took of the bound, latencies left out; 1: no time was lost.
  double share_of_bound(Round round) const { return bound_s() / (seconds(round) - kLatency_s); }

  /// From the call at the first peer to the commit at the last one that commits.
  double seconds(Round round) const { return to_seconds(committed_at_.at(round) - called_at_.at(round)); }

  double usual_s() const { return seconds(5); }

  Round rounds() const { return committed_at_.empty() ? 0 : committed_at_.rbegin()->first; }

  std::set<PeerId> lost() const { return lost_; }

  /// The peers that probed their lines, each with the round in which it did so last.
  std::map<PeerId, Round> probes() const { return probes_; }

  std::string times() const {
    std::string text;
    for (const auto& [round, at] : committed_at_) text += " " + std::to_string(seconds(round));
    return text;
  }

 private:
  struct Planned {
    Round round;
    double after_s;
    std::function<void(World&)> call;
  };

  static WorldOptions options(std::size_t peers, Round rounds, bool apart, codec::Codec codec) {
    WorldOptions options;
    options.run.model = "synthetic";
    options.run.batch.size = 64;
    options.run.microbatch = kMicrobatch;
    options.run.rounds = rounds;
    options.run.codec = codec;
    options.model.parameters = kFloats;
    options.segment_length = kSegment;
    options.bulk_scale = kScale;
    options.checkers = {"I1", "I2", "I3", "I4", "I5", "I6", "L3"};  // nobody tells the others who was struck
    options.wait_for = static_cast<std::uint32_t>(peers);
    if (apart) options.sites = {SiteSpec{.name = ""}};
    options.links = {{"", "", 0.01, 0, 2000 * kMbit, 2 << 20}};
    return options;
  }

  void on_event(PeerId peer, const world::Event& event) {
    if (event.phase() == world::Phase::call && called_at_.try_emplace(event.round, event.at).second) {
      for (const Planned& planned : calls_) {
        if (planned.round != event.round) continue;
        world_.scheduler().after(from_seconds(planned.after_s), [this, planned] { planned.call(world_); });
      }
    }
    if (event.phase() == world::Phase::commit && !forgotten_.contains(peer))
      committed_at_[event.round] = event.at;
    if (event.phase() == world::Phase::probe) probes_[peer] = event.round;
    if (event.phase() == world::Phase::lost && event.peer) lost_.insert(*event.peer);
  }

  World world_;
  codec::Codec codec_;
  std::vector<PeerId> peers_;
  std::vector<swarm::Participant> lines_;
  std::vector<Planned> calls_;
  std::map<Round, Instant> called_at_, committed_at_;
  std::set<PeerId> lost_, forgotten_;
  std::map<PeerId, Round> probes_;
};

TEST(AveragingStory, of_uneven_lines_takes_what_they_allow_after_a_few_rounds) {
  for (const std::vector<double>& rates :
       {std::vector<double>{1000, 1000, 200, 200}, {500, 500, 500, 500}, {1000, 400, 300, 200, 100}}) {
    Averaging averaging(rates);
    averaging.run();
    EXPECT_EQ(averaging.rounds(), 10U);
    for (Round round = 5; round <= 10; ++round) {
      EXPECT_LE(averaging.seconds(round), 1.1 * averaging.bound_s() + kLatency_s)
          << "round " << round << " of" << averaging.times();
    }
  }
}

// Links that sent results before contributions took 1.3 times as long.
TEST(AveragingStory, takes_what_lines_allow_where_a_mean_has_twice_the_bytes_of_a_contribution) {
  for (const std::size_t peers : {2U, 4U, 8U}) {
    Averaging averaging(std::vector<double>(peers, 100), 10, {}, codec::Codec::int4);
    averaging.run();
    for (Round round = 5; round <= 10; ++round)
      EXPECT_GE(averaging.share_of_bound(round), 0.95) << peers << " peers:" << averaging.times();
  }
}

TEST(AveragingStory, of_uneven_lines_probed_during_the_first_batch_takes_what_they_allow_at_once) {
  constexpr double kSamples_s = 8;
  Averaging averaging({1000, 1000, 200, 200}, 3, kSamples_s);
  averaging.run();
  // At the call the last microbatches are under way. With equal shares, a round takes 1.5 times its bound.
  const double call_s = kMicrobatch / kSamples_s + kLatency_s;
  for (Round round = 1; round <= 3; ++round)
    EXPECT_LE(averaging.seconds(round), 1.1 * averaging.bound_s() + call_s) << averaging.times();
  EXPECT_EQ(
      averaging.probes(),
      (std::map<PeerId, Round>{
          {averaging.peer(0), 1}, {averaging.peer(1), 1}, {averaging.peer(2), 1}, {averaging.peer(3), 1}}));
}

TEST(AveragingStory, with_a_line_that_drops_to_a_tenth_in_mid_round_goes_on_and_the_next_rounds_know) {
  for (const auto& [up, down] : {std::pair(50, 50), {50, 500}, {500, 50}}) {
    Averaging averaging({500, 500, 500, 500}, 12);
    averaging.in_round(6, 0.5 * averaging.bound_s(), [&, up = up, down = down](World& world) {
      world.paths().set_line(averaging.peer(2), {up * kMbit, down * kMbit});
    });
    averaging.run();
    EXPECT_THAT(averaging.lost(), testing::IsEmpty());
    // A whole vector takes 10.5 s on that line. Contributions are out by then, and three quarters of the mean
    // have to come: 7.9 s. Were its share left with it, it would take up to 23 s.
    EXPECT_LE(averaging.seconds(6), 9.5) << averaging.times();
    for (Round round = 8; round <= 12; ++round) {
      EXPECT_LE(averaging.seconds(round), 1.05 * kBytes / (50 * kMbit)) << averaging.times();
    }
  }
}

struct Disturbance {
  std::vector<double> rates;
  std::vector<std::size_t> slow;
  double factor;
};

// A line that was known to be slow gets a small share or none, and never shows by itself that it could do
// more.
TEST(AveragingStory, is_back_at_its_bound_three_rounds_after_slow_lines_have_recovered) {
  const std::vector<double> fast_and_slow = {1000, 1000, 200, 200}, equal = {500, 500, 500, 500};
  const std::vector<double> uneven = {1000, 400, 300, 200, 100};
  for (const auto& [rates, slow, factor] : {Disturbance{fast_and_slow, {0}, 0.1},
                                            {fast_and_slow, {0, 1}, 0.1},
                                            {fast_and_slow, {0}, 0.3},
                                            {fast_and_slow, {2}, 0.3},
                                            {equal, {0}, 0.3},
                                            {equal, {0, 1}, 0.1},
                                            {equal, {0, 1}, 0.3},
                                            {uneven, {1}, 0.1},
                                            {uneven, {0, 1, 2}, 0.1}}) {
    constexpr Round kFrom = 5, kTo = 11, kLast = 18;
    Averaging averaging(rates, kLast);
    averaging.slow_down(slow, factor, kFrom, kTo);
    averaging.run();
    ASSERT_EQ(averaging.rounds(), kLast);
    for (Round round = kTo + 3; round <= kLast; ++round) {
      EXPECT_GE(averaging.share_of_bound(round), 0.93)
          << "round " << round << " of" << averaging.times() << "; " << rates[0] << ", " << rates[1] << "; "
          << slow.size() << " lines times " << factor;
    }
  }
}

TEST(AveragingStory, is_done_soon_after_a_peer_stops_in_mid_round) {
  for (const std::size_t place : {0U, 2U}) {
    for (const double part : {0.2, 0.5, 0.9}) {
      Averaging averaging({500, 500, 500, 500});
      averaging.in_round(6, part * averaging.bound_s(), [&](World& world) {
        averaging.forget(averaging.peer(place));
        world.stop(averaging.peer(place), 60s);
      });
      averaging.run();
      EXPECT_LE(averaging.seconds(6), 2 * averaging.usual_s() + 2)
          << (place == 0 ? "leader" : "peer") << " at " << part << ":" << averaging.times();
    }
  }
}

// What four peers of equal lines have to send after one is killed at the part f of a round that takes 1.5
// vectors: its share again (0.17), what is left of the contributions (0.5 (1 - f)), all results anew (0.67),
// and the contributions of who works its microbatches (0.67).
double needed_after_kill(double f) { return (f * 1.5 + 0.17 + 0.5 * (1 - f) + 0.67 + 0.67) / 1.5; }

TEST(AveragingStory, takes_little_longer_than_it_must_when_a_peer_is_killed_in_mid_round) {
  for (const std::size_t place : {0U, 2U}) {
    for (const double part : {0.2, 0.5, 0.9}) {
      Averaging averaging({500, 500, 500, 500});
      averaging.in_round(6, part * averaging.bound_s(), [&](World& world) {
        averaging.forget(averaging.peer(place));
        world.kill(averaging.peer(place), Death::clean);
      });
      averaging.run();
      EXPECT_LE(averaging.seconds(6), 1.05 * needed_after_kill(part) * averaging.usual_s())
          << (place == 0 ? "leader" : "peer") << " at " << part << ":" << averaging.times();
    }
  }
}

}  // namespace
}  // namespace tw::sim
