// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/return_wait.h"

#include <gtest/gtest.h>

namespace tw::train {
namespace {

using namespace std::chrono_literals;

constexpr Instant kBegin = Instant{} + 1h;

sync::LoadedCheckpoint checkpoint_of(Round round) {
  sync::LoadedCheckpoint checkpoint;
  checkpoint.image.record.round = round;
  return checkpoint;
}

TEST(ReturnWait, says_what_it_found_whom_it_waits_for_and_what_comes_then) {
  ReturnWait wait;
  EXPECT_EQ(swarm::Wait{}, wait.waiting(kBegin));
  wait.begin(kBegin, 20s, "its event log is logs/events-1.jsonl");
  EXPECT_EQ(
      "waiting for the other peers of this run, up to 15 s (its event log is logs/events-1.jsonl); then it "
      "begins the run anew",
      text_of(wait.waiting(kBegin + 5s)));
  wait.keep(checkpoint_of(12));
  EXPECT_NE(std::string::npos,
            text_of(wait.waiting(kBegin)).find("resumes alone from its checkpoint of round 12"));
}

TEST(ReturnWait, gives_up_after_the_patience_with_the_checkpoint_that_it_has) {
  ReturnWait wait;
  wait.begin(kBegin, 20s, "--rejoin");
  wait.keep(checkpoint_of(12));
  EXPECT_FALSE(wait.is_over(kBegin + 19s));
  ASSERT_TRUE(wait.is_over(kBegin + 20s));
  const ReturnWait::Rest rest = wait.give_up();
  ASSERT_TRUE(rest.checkpoint);
  EXPECT_EQ(12U, rest.checkpoint->image.record.round);
  EXPECT_EQ(ReturnWait::Stage::off, wait.stage());
  EXPECT_FALSE(wait.is_over(kBegin + 1h));
}

TEST(ReturnWait, ends_when_others_are_found) {
  ReturnWait wait;
  wait.begin(kBegin, 20s, "--rejoin");
  wait.keep_trouble("no checkpoint can be read");
  EXPECT_NE(std::string::npos, text_of(wait.waiting(kBegin)).find("ends: no checkpoint can be read"));
  wait.end();
  EXPECT_FALSE(wait.is_over(kBegin + 1h));
  EXPECT_EQ(ReturnWait::Stage::off, wait.stage());
  EXPECT_EQ(swarm::Wait{}, wait.waiting(kBegin));
}

}  // namespace
}  // namespace tw::train
