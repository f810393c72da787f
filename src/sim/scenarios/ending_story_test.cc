// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sim/scenarios/test_world.h"
#include "train/run/run_names.h"

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

/// The program of one of three peers ends the run in round 4.
class EarlyEnd {
 public:
  EarlyEnd(train::Mode mode, bool dies) : dies_(dies), world_(options_of(mode)) {
    for (int i = 0; i < 3; ++i) peers_.push_back(world_.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
    world_.watch([this](PeerId peer, const world::Event& event) {
      if (const auto* commit = event.as<event::Commit>(); commit && commit->last) last_ = event.round;
      if (peer != author() || event.phase() != world::Phase::commit || event.round != 4) return;
      world_.scheduler().after({}, [this] {
        world_.tell(author(), "ends the run", [](auto& s) { s.end_run(train::EndCause::program); });
      });
      if (dies_) world_.scheduler().after(200ms, [this] { world_.kill(author(), Death::clean); });
    });
  }

  World& world() { return world_; }

  PeerId author() const { return peers_.back(); }

  const std::vector<PeerId>& peers() const { return peers_; }

  Round last() const { return last_; }

 private:
  static WorldOptions options_of(train::Mode mode) {
    WorldOptions options = small_world({{"here", 3, 60, 100 * kMbit, 100 * kMbit}}, 100);
    options.run.mode.kind = mode;
    return options;
  }

  bool dies_;
  Round last_ = 0;
  World world_;
  std::vector<PeerId> peers_;
};

TEST(EndingStory, ends_for_all_when_the_program_of_one_peer_wants_so) {
  for (const train::Mode kind :
       {train::Mode::sync, train::Mode::delayed, train::Mode::local, train::Mode::streaming}) {
    const std::string_view mode = train::name_of(kind);
    for (const bool dies : {false, true}) {
      EarlyEnd story(kind, dies);
      World& world = story.world();
      world.run_until(world.now() + 300s);
      EXPECT_TRUE(world.alive().empty()) << mode;
      EXPECT_THAT(story.last(), testing::AllOf(testing::Ge(5U), testing::Le(7U))) << mode;
      for (const PeerId peer : story.peers()) {
        if (dies && peer == story.author()) continue;
        EXPECT_EQ(world.view(peer).ending, train::Ending::complete);
        const std::string who =
            peer == story.author() ? "this program" : "the program of peer " + to_string(story.author());
        EXPECT_EQ(world.view(peer).ended,
                  fmt::format("the run is over: {} ended it in round {} of 100", who, story.last()));
      }
      for (const Violation& violation : world.referee().violations())
        ADD_FAILURE() << mode << ": " << violation.checker << ": " << violation.message;
    }
  }
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
