// SPDX-License-Identifier: Apache-2.0
#include "sim/liveness_checkers.h"

#include <gtest/gtest.h>

#include "sim/test_story.h"

namespace tw {
namespace {

TEST(L1, names_what_each_session_waits_for_when_the_run_does_not_end) {
  Judged<RunEnds> j;
  SessionView stuck;
  stuck.round = 7;
  stuck.waiting = "peer 3: no vote";
  const Survivor survivors[] = {finished(kAnn), {kBob, stuck}};
  j.checker.on_end(survivors);
  ASSERT_EQ(j.checker.violations().size(), 1U);
  EXPECT_EQ(j.story.verdict(), "peer 12 has not come beyond round 7; it waits for: peer 3: no vote");
}

TEST(L1, fires_for_members_of_the_last_record_alone_once_the_run_is_over) {
  Judged<RunEnds> j;
  Record last = j.story.next(j.story.genesis(), {1, 1});
  last.last = true;
  j.commit(kAnn, last);
  const Survivor survivors[] = {finished(kAnn), {kBob, {}}, {kEve, {}}};
  j.checker.on_end(survivors);
  ASSERT_EQ(j.checker.violations().size(), 1U);
  EXPECT_NE(j.story.verdict().find("peer 12"), std::string::npos);
}

TEST(Failure, fires_unless_the_session_came_after_the_end_of_the_run) {
  Judged<NobodyFails> j;
  SessionView failed;
  failed.failure = "nobody is there";
  j.checker.on_look({kEve, failed});
  EXPECT_EQ(j.story.verdict(), "peer 13 at round 0: nobody is there");
  Record last = j.story.next(j.story.genesis(), {1, 1});
  last.last = true;
  j.commit(kAnn, last);
  j.checker.on_look({kEve, failed});
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(L3, fires_when_a_wait_of_more_than_five_seconds_names_nobody) {
  WaitsAreNamed checker;
  SessionView named, silent;
  named.waiting = "peer 3: silent";
  checker.on_look({kAnn, named, std::chrono::seconds(60)});
  checker.on_look({kAnn, silent, std::chrono::seconds(5)});
  EXPECT_TRUE(checker.violations().empty());
  checker.on_look({kAnn, silent, std::chrono::milliseconds(5001)});
  checker.on_look({kAnn, silent, std::chrono::milliseconds(5201)});
  EXPECT_EQ(checker.violations().size(), 1U);
}

}  // namespace
}  // namespace tw
