// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sim/scenarios/test_world.h"

/// The last rounds of a run, where nobody is left to ask afterwards.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;

constexpr Round kRounds = 12;

/// The compute thread of the second of two peers is away from the commit of this round on.
class EndingStory {
 public:
  EndingStory(Round away_from, Duration lasts)
      : lasts_(lasts), world_(small_world({{"here", 2, 60, 100 * kMbit, 100 * kMbit}}, kRounds)) {
    for (int i = 0; i < 2; ++i) peers_.push_back(world_.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
    world_.watch([this, away_from](PeerId peer, const world::Event& event) {
      const auto* restored = event.as<event::Restore>();
      const bool has_state = event.as<event::Apply>() || (restored && !restored->digest.empty());
      if (has_state && event.round == kRounds) arrived_.insert(peer);
      if (peer != slow() || event.phase() != world::Phase::commit || event.round != away_from) return;
      world_.scheduler().after({}, [this] { world_.send_away(slow(), lasts_, true); });
    });
  }

  World& world() { return world_; }

  PeerId slow() const { return peers_.back(); }

  /// These hold the parameters of the last round.
  std::size_t arrived() const { return arrived_.size(); }

 private:
  Duration lasts_;
  World world_;
  std::vector<PeerId> peers_;
  std::set<PeerId> arrived_;
};

TEST(EndingStory, brings_the_last_parameters_to_a_peer_whose_thread_is_away) {
  for (const Duration lasts : {3s, 10s, 20s}) {
    for (Round away_from = kRounds - 6; away_from <= kRounds; ++away_from) {
      EndingStory story(away_from, lasts);
      World& world = story.world();
      world.run_until(world.now() + 300s);
      EXPECT_TRUE(world.alive().empty()) << "away from round " << away_from;
      EXPECT_EQ(story.arrived(), 2U) << "away from round " << away_from << " for " << to_seconds(lasts)
                                     << " s";
      for (const Violation& violation : world.referee().violations())
        ADD_FAILURE() << violation.checker << ": " << violation.message;
    }
  }
}

TEST(EndingStory, leaves_nobody_in_search_of_others_after_the_last_record) {
  EndingStory story(kRounds, 20s);
  World& world = story.world();
  const Instant until = world.now() + 300s;
  Duration left{};
  for (; world.now() < until && !world.alive().empty(); world.run_until(world.now() + 1s)) {
    if (world.alive() != std::vector{story.slow()}) continue;
    left += 1s;
    EXPECT_FALSE(world.standing(story.slow()).is_alone) << "the others have ended with the run";
  }
  EXPECT_GT(left, 3s);
}

/// A bit of the memory of the second of three peers flips.
TEST(EndingStory, says_why_a_peer_with_other_parameters_takes_those_of_the_others) {
  World world(small_world({{"here", 3, 60, 100 * kMbit, 100 * kMbit}}, kRounds));
  std::vector<PeerId> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(world.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
  const PeerId victim = peers[1];
  const auto struck = [&](const Digest& parameters) {
    world.referee().struck({FaultKind::memory_flip, {victim}, world.now(), {}, parameters});
  };
  std::vector<std::string> warnings;
  world.watch([&](PeerId peer, const world::Event& event) {
    if (peer == victim && event.as<event::Warn>()) warnings.push_back(event.why);
    if (peer != victim || event.phase() != world::Phase::commit || event.round != 3) return;
    world.scheduler().after({}, [&] { world.flip_memory(victim, 9, struck); });
  });
  world.run_until(world.now() + 300s);
  EXPECT_TRUE(world.alive().empty());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings.front(),
              testing::HasSubstr("parameters are not those of the run, which it fetches again"));
  for (const Violation& violation : world.referee().violations())
    ADD_FAILURE() << violation.checker << ": " << violation.message;
}

}  // namespace
}  // namespace tw::sim
