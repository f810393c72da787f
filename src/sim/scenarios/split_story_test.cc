// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sim/scenarios/test_world.h"

/// A peer is cut off, goes on alone, faster than the others together, and comes back on a thin line.
namespace tw::sim {
namespace {

using namespace std::chrono_literals;

class SplitStory {
 public:
  SplitStory()
      : world_(small_world(
            {{"wide", 3, 60, 100 * kMbit, 100 * kMbit}, {"thin", 1, 400, 2 * kMbit, 2 * kMbit}}, 400)) {
    world_.watch([this](PeerId peer, const world::Event& event) {
      if (event.phase() == world::Phase::restore) restored_.insert(peer);
    });
    for (int i = 0; i < 3; ++i) peers_.push_back(world_.add_peer({0, 60, {100 * kMbit, 100 * kMbit}}));
    peers_.push_back(world_.add_peer({1, 400, {2 * kMbit, 2 * kMbit}}));
  }

  World& world() { return world_; }

  PeerId alone() const { return peers_.back(); }

  const std::set<PeerId>& restored() const { return restored_; }

  Round round_of(PeerId peer) const { return world_.view(peer).round; }

  Digest head() const {
    const wire::Record* newest = world_.referee().ledger().newest();
    return digest_of(*newest);
  }

  void run_for(Duration time) { world_.run_until(world_.now() + time); }

  /// How long it takes until it contributes; more than `limit` when it does not.
  Duration until_it_contributes(Duration limit) {
    const Instant from = world_.now();
    while (world_.now() - from <= limit && !contributes()) run_for(200ms);
    return world_.now() - from;
  }

 private:
  bool contributes() const {
    const std::vector<wire::Contribution>& all = world_.referee().ledger().newest()->contributors;
    return std::ranges::any_of(all, [&](const wire::Contribution& c) { return c.peer == alone(); });
  }

  World world_;
  std::vector<PeerId> peers_;
  std::set<PeerId> restored_;
};

TEST(SplitStory, ends_with_the_history_of_the_majority_and_with_the_fast_peer_among_its_members) {
  SplitStory story;
  World& world = story.world();
  story.run_for(20s);
  const Round before = story.round_of(story.alone());
  ASSERT_GT(before, 2U);
  world.paths().isolate({story.alone()}, false);
  world.referee().struck({FaultKind::partition, {story.alone()}, world.now(), 16s});
  story.run_for(16s);
  const PeerId other = world.alive().front();
  const Round alone = story.round_of(story.alone()) - before, together = story.round_of(other) - before;
  EXPECT_GT(alone, together) << "it made more rounds than the others";
  EXPECT_GT(together, 10U);
  const Digest kept = story.head();
  EXPECT_FALSE(world.referee().ledger().find(kept)->minority);
  world.become_calm();
  // Its line takes a second for each mean since the state that it took: the run holds a round back for it.
  const Duration took = story.until_it_contributes(60s);
  EXPECT_LE(took, 22s) << to_seconds(took);
  story.run_for(20s);
  EXPECT_EQ(story.restored(), std::set{story.alone()}) << "nobody else gave anything up";
  EXPECT_TRUE(world.referee().ledger().leads_to(kept, story.head()));
  EXPECT_GT(story.round_of(other), before + together);
  for (const Violation& violation : world.referee().violations())
    ADD_FAILURE() << violation.checker << ": " << violation.message;
}

/// Nobody was ever cut off: a joiner whose line carries less than one mean in a round.
TEST(SplitStory, has_no_joiner_that_loads_the_lines_of_others_for_ever) {
  SplitStory story;
  World& world = story.world();
  story.run_for(10s);
  world.kill(story.alone(), Death::clean);
  story.run_for(5s);
  world.come_back(story.alone());
  const Duration took = story.until_it_contributes(60s);
  EXPECT_LE(took, 20s) << to_seconds(took);
  for (const Violation& violation : world.referee().violations())
    ADD_FAILURE() << violation.checker << ": " << violation.message;
}

}  // namespace
}  // namespace tw::sim
