// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/troubles.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

using event::Cause;
using world::Phase;

class AUser : public testing::Test {
 protected:
  std::string hears(const world::Event& event) { return troubles_.line_for(event).value_or("(nothing)"); }

  std::string hears_of(Phase phase, Round round, const char* why) {
    const Cause cause = *why == 0 ? Cause::none : Cause::failed;
    world::Fact fact = event::Checkpoint{.cause = cause, .took_s = 0.1};
    if (phase == Phase::copy) fact = event::Copy{.cause = cause, .took_s = 0.1};
    return hears({.round = round, .why = why, .fact = std::move(fact)});
  }

  std::string hears_of_commit(Round round, std::uint64_t members, Cause cause = Cause::none) {
    return hears({.round = round, .fact = event::Commit{.cause = cause, .members = members}});
  }

  Troubles troubles_;
};

TEST_F(AUser, hears_once_that_the_disk_takes_no_checkpoints_and_when_it_does_again) {
  for (const Phase phase : {Phase::checkpoint, Phase::copy}) {
    const std::string one = phase == Phase::copy ? "copy in checkpoint.to" : "checkpoint";
    const std::string many = phase == Phase::copy ? "copies in checkpoint.to" : "checkpoints";
    EXPECT_EQ(hears_of(phase, 1, ""), "(nothing)");
    EXPECT_EQ(hears_of(phase, 2, "disk full"), "round 2: no " + one + ", training goes on: disk full");
    EXPECT_EQ(hears_of(phase, 3, "disk full"), "(nothing)");
    EXPECT_EQ(troubles_.unsaved(), "disk full");
    EXPECT_EQ(hears_of(phase, 4, ""), "round 4: " + many + " are written again; 2 could not be");
    EXPECT_EQ(troubles_.unsaved(), "");
    EXPECT_EQ(hears_of(phase, 5, ""), "(nothing)");
    EXPECT_EQ(hears_of(phase, 6, "gone"), "round 6: no " + one + ", training goes on: gone");
    hears_of(phase, 7, "");
  }
}

TEST_F(AUser, hears_always_that_the_last_one_is_missing) {
  for (const Phase phase : {Phase::checkpoint, Phase::copy}) {
    const std::string one = phase == Phase::copy ? "copy in checkpoint.to" : "checkpoint";
    hears({.round = 2, .fact = event::Commit{}});
    EXPECT_EQ(hears_of(phase, 2, "disk full"), "round 2: no " + one + ", training goes on: disk full");
    hears({.round = 3, .fact = event::Commit{.last = true}});
    EXPECT_EQ(hears_of(phase, 2, "disk full"), "(nothing)") << "of a save that took long";
    EXPECT_EQ(hears_of(phase, 3, "disk full"), "round 3: no " + one + ": disk full");
    EXPECT_EQ(troubles_.unsaved(), "disk full");
  }
}

TEST_F(AUser, is_not_told_that_a_checkpoint_is_missing_that_nobody_tried_to_write) {
  EXPECT_EQ(hears({.round = 2, .why = "no anchor", .fact = event::Copy{.cause = Cause::failed}}),
            "no anchor");
  EXPECT_EQ(troubles_.unsaved(), "");
  EXPECT_EQ(hears({.round = 2, .why = "2.tw is damaged", .fact = event::Checkpoint{.cause = Cause::skipped}}),
            "skipped a checkpoint: 2.tw is damaged");
  EXPECT_EQ(troubles_.unsaved(), "");
}

TEST_F(AUser, hears_that_rounds_without_a_majority_may_be_given_up_and_that_they_were) {
  EXPECT_EQ(hears_of_commit(6, 3), "(nothing)");
  EXPECT_EQ(
      hears_of_commit(7, 1, Cause::minority),
      "round 7 was decided without a majority of the members: if the others trained on, this peer gives "
      "up its rounds from then on when it meets them");
  EXPECT_EQ(hears_of_commit(8, 1), "(nothing)");
  EXPECT_EQ(hears_of_commit(9, 1, Cause::minority), "(nothing)");
  const world::Event taken{.round = 5, .why = "from other peers", .fact = event::Restore{.digest = "00ff"}};
  EXPECT_EQ(hears(taken),
            "gave up its rounds from 7 on, which it had decided without a majority, for the state of the "
            "others after round 5");
  EXPECT_EQ(hears(taken), "(nothing)");
}

TEST_F(AUser, hears_nothing_of_state_that_is_taken_when_the_others_came_to_the_lone_peer) {
  hears_of_commit(7, 1, Cause::minority);
  hears_of_commit(8, 3);
  EXPECT_EQ(hears({.round = 9, .fact = event::Restore{.digest = "00ff"}}), "(nothing)");
}

TEST_F(AUser, hears_of_a_spent_budget_of_a_lone_beginning_and_of_messages_that_cannot_be_sent) {
  EXPECT_EQ(hears({.why = "the run has cost 1 USD", .fact = event::Budget{}}), "the run has cost 1 USD");
  EXPECT_EQ(hears({.round = 40,
                   .why = "from its own state",
                   .fact = event::Restore{.digest = "00ff", .cause = Cause::anew}}),
            "goes on alone after round 40: from its own state");
  EXPECT_EQ(hears({.round = 4, .why = "too large: not sent", .fact = event::Refuse{.cause = Cause::own}}),
            "round 4: too large: not sent");
  EXPECT_EQ(hears({.peer = PeerId{3}, .why = "id is taken", .fact = event::Refuse{.cause = Cause::taken}}),
            "(nothing)");
  EXPECT_EQ(hears({.why = "what was said already", .fact = event::Warn{}}), "(nothing)");
}

TEST_F(AUser, hears_once_of_each_peer_that_trains_something_else) {
  const auto refusal = [](std::uint64_t peer, const char* why) {
    return world::Event{.peer = PeerId{peer}, .why = why, .fact = event::Refuse{.cause = Cause::run}};
  };
  EXPECT_EQ(troubles_.refused(), "");
  EXPECT_EQ(hears(refusal(3, "another run: expected \"batch=8\"")),
            "peer 3 was refused: another run: expected \"batch=8\"; its own message says what it has "
            "instead");
  EXPECT_EQ(hears(refusal(3, "another run: expected \"batch=8\"")), "(nothing)");
  EXPECT_NE(hears(refusal(3, "another run: expected \"seed=1\"")), "(nothing)");
  EXPECT_NE(hears(refusal(4, "another run: expected \"batch=8\"")), "(nothing)");
  EXPECT_EQ(troubles_.refused(), "peer 4 was refused: another run: expected \"batch=8\"");
  hears({.round = 1, .fact = event::Commit{}});
  EXPECT_EQ(troubles_.refused(), "") << "nobody waits for it any more";
}

}  // namespace
}  // namespace tw::monitor
