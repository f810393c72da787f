// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "swarm/lead.h"
#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

TEST(LeadSettings, are_those_of_the_first_peer_in_the_mean) {
  Council council;
  council.wishes = {{1, "rate 0.1"}, {2, "rate 0.2"}};
  const wire::Plan plan = council.work_until_called();
  ASSERT_FALSE(plan.draft.contributors.empty());
  EXPECT_EQ(PeerId{1}, plan.draft.contributors.front().peer);
  EXPECT_EQ("rate 0.1", plan.draft.settings);
  for (const std::uint64_t id : {1, 2, 3}) council.vote(id);
  ASSERT_TRUE(council.lead.committed());
  EXPECT_EQ("rate 0.1", council.lead.committed()->settings);
}

TEST(LeadSettings, stay_as_they_are_if_the_first_peer_in_the_mean_wants_none) {
  Council council;
  council.wishes = {{2, "rate 0.2"}, {3, "rate 0.3"}};
  EXPECT_EQ("", council.work_until_called().draft.settings);
}

TEST(LeadSettings, of_the_round_before_make_the_call_wait_for_those_of_this_round) {
  Council council({.lease = {12, 4}});  // one microbatch each: a call may come before any is done
  council.wishes = {{1, "old"}, {2, "old"}, {3, "old"}};
  council.everybody_tells();
  EXPECT_EQ(0U, council.last_plan.version);
  council.wishes = {{1, "1"}, {2, "2"}, {3, "3"}};
  council.works_once(2);
  ASSERT_EQ(1U, council.last_plan.version);
  EXPECT_EQ("2", council.last_plan.draft.settings);
}

TEST(LeadSettings, that_nobody_wants_do_not_hold_up_the_call) {
  Council council({.lease = {12, 4}});
  council.everybody_tells();
  EXPECT_EQ(1U, council.last_plan.version) << "nobody has done anything yet";
}

TEST(LeadSettings, are_not_those_of_a_peer_that_took_no_part) {
  Council council;
  council.wishes = {{2, "rate 0.2"}, {3, "rate 0.3"}};
  council.everybody_tells();
  council.works_once(2);
  council.lose(2);
  EXPECT_NE("rate 0.2", council.work_until_called().draft.settings);
}

TEST(LeadSettings, are_what_a_peer_wanted_last) {
  Council council;
  council.wishes = {{1, "rate 0.1"}};
  council.everybody_tells();
  council.works_once(1);
  council.wishes.clear();
  EXPECT_EQ("", council.work_until_called().draft.settings);
}

}  // namespace
}  // namespace tw::swarm
