// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/virtual/world.h"

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

WorldOptions world_of_three(double norm_cap) {
  WorldOptions options;
  options.run.model = "synthetic";
  options.run.batch.size = 48;
  options.run.microbatch = 4;
  options.run.rounds = 4;
  options.run.norm_cap = norm_cap;
  options.wait_for = 3;
  return options;
}

struct Story {
  std::vector<std::string> refusals{};  ///< of own contributions, not of connections to who has ended
  Round committed = 0;
};

/// Three peers to their end.
Story run(World& world) {
  Story story;
  world.watch([&](PeerId, const world::Event& event) {
    const bool connection = event.why == "connection refused";
    if (event.phase() == world::Phase::refuse && !event.peer && !connection)
      story.refusals.push_back(event.why);
    if (event.phase() == world::Phase::commit) story.committed = event.round;
  });
  for (int i = 0; i < 3; ++i) world.add_peer();
  world.run_until(Scheduler::kStart + 120s);
  world.watch({});
  return story;
}

TEST(NormCap, is_not_noticed_as_long_as_gradients_are_within_it) {
  World world(world_of_three(600));  // at most 128 * sqrt(16)
  const Story story = run(world);
  EXPECT_THAT(story.refusals, testing::IsEmpty());
  world.finish();
  EXPECT_THAT(world.referee().violations(), testing::IsEmpty());
  EXPECT_EQ(story.committed, 4U);
}

TEST(NormCap, that_no_gradient_keeps_ends_everybody_with_the_value_and_the_cap) {
  World world(world_of_three(1e-3));
  const Story story = run(world);
  EXPECT_THAT(story.refusals, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(story.refusals,
              testing::Each(testing::HasSubstr("beyond training.norm_cap 0.001: the round goes on")));
  EXPECT_THAT(world.alive(), testing::IsEmpty()) << "and nobody waits for ever";
  EXPECT_THAT(world.referee().violations(), testing::SizeIs(3));
  EXPECT_THAT(world.referee().violations(),
              testing::Each(testing::Field(&Violation::message, testing::HasSubstr("too few other peers"))));
  EXPECT_EQ(story.committed, 0U);
}

}  // namespace
}  // namespace tw::sim
