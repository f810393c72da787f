// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/scenarios/test_world.h"

/// A peer comes back into a round that nobody else lives to decide.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;

/// The first peer of three is started again after round 3. When its log has this line, the two that went on
/// die, so much later.
class ReturnStory {
 public:
  ReturnStory(world::Phase last, Duration later)
      : world_(small_world({{"here", 3, 60, 100 * kMbit, 100 * kMbit}}, 40)), last_(last), later_(later) {
    for (int i = 0; i < 3; ++i) peers_.push_back(world_.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
    world_.watch([this](PeerId peer, const world::Event& event) { on_event(peer, event); });
  }

  World& world() { return world_; }

  PeerId returner() const { return peers_.front(); }

  /// In which it is left alone.
  std::optional<Round> round() const { return round_; }

  /// It began a history of its own.
  bool begins_anew() const { return anew_; }

 private:
  void on_event(PeerId peer, const world::Event& event) {
    if (peer != returner()) return;
    const auto* restored = event.as<event::Restore>();
    anew_ = anew_ || (restored && restored->cause == event::Cause::anew);
    if (!gone_ && event.phase() == world::Phase::commit && event.round == 3) {
      gone_ = true;
      world_.scheduler().after({}, [this] { world_.kill(returner(), Death::clean); });
      world_.scheduler().after(500ms, [this] { world_.relaunch(returner()); });
    } else if (gone_ && !round_ && event.phase() == last_) {
      round_ = event.round;
      for (const PeerId other : {peers_[1], peers_[2]})
        world_.scheduler().after(later_, [this, other] { world_.kill(other, Death::clean); });
    }
  }

  World world_;
  world::Phase last_;
  Duration later_;
  std::vector<PeerId> peers_;
  bool gone_ = false;
  bool anew_ = false;
  std::optional<Round> round_;
};

TEST(ReturnStory, ends_with_the_round_done_alone_that_nobody_else_lives_to_decide) {
  for (const auto& [last, later] : {std::pair{world::Phase::call, 0ms}, {world::Phase::accumulate, 200ms}}) {
    ReturnStory story(last, later);
    World& world = story.world();
    world.run_until(world.now() + 30s);
    ASSERT_TRUE(story.round());
    EXPECT_GT(world.view(story.returner()).round, *story.round() + 1) << "the patience is 3 s";
    for (const Violation& violation : world.referee().violations())
      ADD_FAILURE() << violation.checker << ": " << violation.message;
  }
}

// What it did for the round that nobody decides is in no sum of its own round of that number.
TEST(ReturnStory, counts_no_gradient_of_the_round_that_died_with_the_others) {
  int began = 0;
  for (Duration later = 50ms; later <= 350ms; later += 50ms) {
    ReturnStory story(world::Phase::accumulate, later);
    World& world = story.world();
    world.run_until(world.now() + 15s);
    began += story.begins_anew() ? 1 : 0;
    for (const Violation& violation : world.referee().violations())
      ADD_FAILURE() << to_seconds(later) << " s: " << violation.checker << ": " << violation.message;
  }
  EXPECT_GT(began, 0);
}

/// The first peer dies early, the others later. All come back, each with its own disk.
TEST(ReturnStory, goes_on_from_the_newest_checkpoint_whichever_disk_holds_it) {
  WorldOptions options = small_world({{"here", 3, 60, 100 * kMbit, 100 * kMbit}}, 400);
  options.run.checkpoint.folder = "/checkpoints";
  options.run.checkpoint.every = 1;
  World world(options);
  std::vector<PeerId> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(world.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
  const PeerId founder = peers.front();
  std::map<PeerId, Round> resumed;
  world.watch([&](PeerId peer, const world::Event& event) {
    const auto* restored = event.as<event::Restore>();
    if (restored && restored->cause == event::Cause::checkpoint) resumed[peer] = event.round;
  });
  world.run_until(world.now() + 4s);
  const Round early = world.view(founder).round;
  world.kill(founder, Death::clean);
  world.run_until(world.now() + 10s);
  const Round late = world.view(peers.back()).round;
  ASSERT_GT(late, early + 5);
  for (const PeerId peer : {peers[1], peers[2]}) world.kill(peer, Death::clean);
  for (const PeerId peer : peers) world.relaunch(peer);
  world.run_until(world.now() + 15s);
  ASSERT_EQ(resumed.size(), 1U);
  EXPECT_NE(resumed.begin()->first, founder);
  EXPECT_GE(resumed.begin()->second, late - 1);
  EXPECT_GT(world.view(founder).round, late + 5);
  for (const Violation& violation : world.referee().violations())
    ADD_FAILURE() << violation.checker << ": " << violation.message;
}

/// Others may have its state: it neither begins a second history nor says that the run is lost.
TEST(ReturnStory, of_a_peer_that_cannot_look_for_others_ends_with_that_reason) {
  WorldOptions options = small_world({{"here", 1, 60, 100 * kMbit, 100 * kMbit}}, 400);
  options.unasked = "s3://bucket/peers: timed out";
  World world(options);
  const PeerId peer = world.add_peer({0, 60, {100 * kMbit, 100 * kMbit}});
  world.run_until(world.now() + 4s);
  world.kill(peer, Death::clean);
  world.relaunch(peer);
  world.run_until(world.now() + 20s);
  EXPECT_THAT(text_of(world.view(peer).waiting),
              testing::HasSubstr("then it ends: whether a peer of the run lives is not known: s3://bucket/"));
  world.run_until(world.now() + 20s);
  EXPECT_EQ(world.view(peer).failure,
            "whether a peer of the run lives is not known: s3://bucket/peers: timed out");
  EXPECT_EQ(world.view(peer).ending, train::Ending::unreached) << "another start may reach one";
}

/// A machine stands still for longer than the others wait, and another process comes in its place.
TEST(ReturnStory, of_a_member_that_was_replaced_while_it_stood_still_ends_with_the_reason) {
  World world(small_world({{"here", 3, 60, 100 * kMbit, 100 * kMbit}}, 400));
  std::vector<PeerId> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(world.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
  const PeerId replaced = peers.back();
  world.run_until(world.now() + 5s);
  ASSERT_GT(world.view(replaced).round, 2U);
  world.stop(replaced, 20s);
  world.run_until(world.now() + 8s);
  world.add_twin(replaced);
  world.run_until(world.now() + 12s + 20s);
  EXPECT_TRUE(world.view(replaced).finished);
  EXPECT_THAT(world.view(replaced).failure,
              testing::AllOf(testing::HasSubstr("another process takes part under the id of this one"),
                             testing::HasSubstr("is taken")));
  EXPECT_FALSE(world.view(peers.front()).finished);
}

}  // namespace
}  // namespace tw::sim
