// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "sim/scenarios/test_world.h"
#include "sim/virtual/world_rules.h"

/// Stores that do not give every sample to every peer.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::size_t kStores = 5;  // one for each peer
constexpr std::uint64_t kStoreSeeds = 40;
constexpr std::uint64_t kBatchOfStores = 64, kMicrobatchOfStores = 4;
constexpr Round kRoundsOfStores = 60;

/// The peer that came as this one cannot have the sample.
using Lacks = std::function<bool(std::size_t place, std::uint64_t sample)>;

class BrokenSamples {
 public:
  BrokenSamples(std::uint64_t seed, Lacks lacks, std::vector<std::string> checkers = {})
      : lacks_(std::move(lacks)), options_(options(seed, std::move(checkers))), world_(options_) {
    world_.watch([this](PeerId peer, const world::Event& event) {
      const auto* again = event.as<event::Reissue>();
      const bool gives = again && again->cause == event::Cause::sample;
      if (gives) given_[event.round].insert(peer);
      if (gives && on_given_) std::exchange(on_given_, {})(peer);
    });
    for (std::size_t i = 0; i < kStores; ++i)
      peers_.push_back(world_.add_peer({0, 60 + 10.0 * static_cast<double>(i), {100 * kMbit, 100 * kMbit}}));
  }

  World& world() { return world_; }

  const std::vector<PeerId>& peers() const { return peers_; }

  void run_for(Duration time) { world_.run_until(world_.now() + time); }

  /// Once, when a peer cannot have a sample.
  void when_given(std::function<void(PeerId)> call) { on_given_ = std::move(call); }

  /// Peers that gave samples to others, by round.
  const std::map<Round, std::set<PeerId>>& given() const { return given_; }

  bool lacks(PeerId peer, std::uint64_t sample) const {
    const auto place = std::find(peers_.begin(), peers_.end(), peer) - peers_.begin();
    return lacks_(static_cast<std::size_t>(place), sample);
  }

  /// What contributors of the run's records cannot have, and samples that somebody lacked.
  struct Computed {
    int impossible = 0;
    int elsewhere = 0;
  };

  Computed computed() const {
    Computed found;
    const Rules rules = rules_of(options_);
    const Ledger& ledger = world_.referee().ledger();
    for (const wire::Record* r = ledger.newest(); r != nullptr; r = ledger.find(r->parent)) {
      for (const wire::Contribution& c : r->contributors)
        for (const train::SampleSpan span : samples_of(*r, c.microbatches, rules)) count(c.peer, span, found);
    }
    return found;
  }

  void expect_no_violations() const {
    for (const Violation& violation : world_.referee().violations())
      ADD_FAILURE() << violation.checker << ": " << violation.message;
  }

 private:
  WorldOptions options(std::uint64_t seed, std::vector<std::string> checkers) {
    WorldOptions options = small_world({{"site", static_cast<int>(kStores), {60, 100}}}, kRoundsOfStores);
    options.seed = seed;
    options.run.exact_batches = true;
    options.checkers = std::move(checkers);
    options.lacks = [this](PeerId peer, std::uint64_t sample) { return lacks(peer, sample); };
    return options;
  }

  void count(PeerId peer, train::SampleSpan span, Computed& found) const {
    for (std::uint64_t s = span.first; s < span.first + span.count; ++s) {
      found.impossible += lacks(peer, s) ? 1 : 0;
      const auto lacks_it = [&](PeerId other) { return lacks(other, s); };
      found.elsewhere += std::ranges::any_of(peers_, lacks_it) ? 1 : 0;
    }
  }

  Lacks lacks_;
  WorldOptions options_;
  World world_;
  std::vector<PeerId> peers_;
  std::map<Round, std::set<PeerId>> given_;
  std::function<void(PeerId)> on_given_;
};

TEST(BrokenSamplesStory, are_computed_once_by_peers_that_have_them) {
  std::size_t rounds = 0;
  for (std::uint64_t seed = 1; seed <= kStoreSeeds; ++seed) {
    SCOPED_TRACE(seed);
    // One microbatch of 16 has samples that fail at two peers, or at one.
    BrokenSamples story(seed, [seed](std::size_t place, std::uint64_t sample) {
      const std::uint64_t draw = mix(seed, sample / kMicrobatchOfStores);
      const bool fails = draw % 16 == 0 && mix(draw, sample) % 2 == 0;
      return fails && (place == draw / 16 % kStores || place == draw / 256 % kStores);
    });
    World& world = story.world();
    // One is lost, and comes back in every second run.
    story.run_for(2s + 300ms * (seed % 8));
    const PeerId lost = story.peers()[seed % kStores];
    world.kill(lost, Death::clean);
    world.referee().struck({FaultKind::kill, {lost}, world.now(), {}});
    story.run_for(2s);
    if (seed % 2 == 0) world.come_back(lost);
    world.become_calm();
    story.run_for(120s);
    world.finish();
    EXPECT_TRUE(world.alive().empty());
    story.expect_no_violations();
    const BrokenSamples::Computed computed = story.computed();
    EXPECT_EQ(computed.impossible, 0);
    EXPECT_GT(computed.elsewhere, static_cast<int>(kRoundsOfStores));
    rounds += story.given().size();
  }
  EXPECT_GT(rounds, kStoreSeeds * kRoundsOfStores / 4) << "rounds in which somebody met such a sample";
}

// What is left to the checkers where the run cannot come to its end.
const std::vector<std::string>& laws_of_a_run_that_stops() {
  static const std::vector<std::string> kLaws = {"I1", "I2", "I3", "I4",  "I5",  "I6",
                                                 "I7", "I8", "I9", "I11", "I12", "L3"};
  return kLaws;
}

TEST(BrokenSamplesStory, that_nobody_has_end_the_run_everywhere_with_their_name) {
  int killed = 0;
  for (std::uint64_t seed = 1; seed <= kStoreSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Round round = 2 + seed % 6;
    const std::uint64_t bad = (round - 1) * kBatchOfStores + mix(seed, 0) % kBatchOfStores;
    BrokenSamples story(
        seed, [bad](std::size_t, std::uint64_t sample) { return sample == bad; }, laws_of_a_run_that_stops());
    World& world = story.world();
    std::set<PeerId> lost;
    // In every second run the leader is lost with what it was told.
    if (seed % 2 == 0) {
      story.when_given([&](PeerId peer) {
        world.scheduler().after(std::chrono::milliseconds(mix(seed, 1) % 100), [&, peer] {
          const PeerId leader = world.lives(peer) ? world.view(peer).leader : peer;
          if (!world.lives(leader) || world.view(leader).finished) return;
          world.kill(leader, Death::clean);
          world.referee().struck({FaultKind::kill, {leader}, world.now(), {}});
          lost.insert(leader);
        });
      });
    }
    story.run_for(60s);
    world.finish();
    EXPECT_TRUE(world.alive().empty()) << "they hang";
    story.expect_no_violations();
    killed += static_cast<int>(lost.size());
    std::set<std::string> told;
    for (const PeerId peer : story.peers()) {
      if (lost.contains(peer) || world.lives(peer)) continue;
      EXPECT_EQ(world.view(peer).round, round - 1);
      told.insert(world.view(peer).failure);
    }
    for (const std::string& why : told) {
      EXPECT_THAT(why, HasSubstr("no peer can compute a sample of round " + std::to_string(round)));
      EXPECT_THAT(why, HasSubstr("a.tar: " + std::to_string(bad) + ": 404 Not Found"));
    }
    if (!lost.empty()) continue;
    EXPECT_EQ(told.size(), 1U) << *told.begin();
    EXPECT_EQ(story.given().at(round).size(), 3U) << *told.begin();
  }
  EXPECT_GT(killed, static_cast<int>(kStoreSeeds) / 4);
}

}  // namespace
}  // namespace tw::sim
