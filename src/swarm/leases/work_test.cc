// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/work.h"

#include <gtest/gtest.h>

namespace tw::swarm {
namespace {

RangeSet ranged(std::uint64_t first, std::uint64_t count) { return RangeSet(Range{first, count}); }

TEST(Work, does_what_was_leased_one_microbatch_after_the_other) {
  Work work(3);
  work.lease(0, ranged(4, 2));
  const std::optional<WorkItem> first = work.begin();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(3U, first->round);
  EXPECT_EQ(4U, first->microbatches.ranges().front().first);
  EXPECT_FALSE(work.begin().has_value()) << "one is under way";
  EXPECT_FALSE(work.wants_more());
  work.finish(1);
  EXPECT_EQ(5U, work.begin()->microbatches.ranges().front().first);
  EXPECT_TRUE(work.wants_more()) << "while the last one is computed";
  EXPECT_FALSE(work.has_done_just(0, ranged(4, 2)));
  work.finish(1);
  EXPECT_TRUE(work.has_done_just(0, ranged(4, 2)));
  EXPECT_TRUE(work.idle());
  EXPECT_FALSE(work.begin().has_value());
}

TEST(Work, begins_several_at_once_and_holds_on_to_those_that_were_not_done) {
  Work work(1);
  work.lease(0, ranged(0, 6));
  EXPECT_EQ(ranged(0, 6), work.waiting());
  EXPECT_EQ(ranged(0, 4), work.begin(4)->microbatches);
  EXPECT_EQ(ranged(4, 2), work.waiting());
  work.drop_queued();
  EXPECT_EQ(RangeSet(), work.waiting());
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, {}, ranged(0, 4)}}), work.progress()) << "they have begun";
  work.finish(3);
  EXPECT_FALSE(work.wants_more());
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, ranged(0, 3), ranged(3, 1)}}), work.progress());
  EXPECT_EQ(ranged(3, 1), work.begin(4)->microbatches);
  work.finish(1);
  EXPECT_TRUE(work.has_done_just(0, ranged(0, 4)));
}

TEST(Work, gives_back_what_has_not_begun) {
  Work work(1);
  work.lease(0, ranged(0, 4));
  work.begin();
  work.finish(1);
  work.begin();
  work.drop_queued();
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, ranged(0, 1), ranged(1, 1)}}), work.progress());
  work.finish(1);
  EXPECT_FALSE(work.begin().has_value());
  EXPECT_TRUE(work.has_done_just(0, ranged(0, 2)));
}

TEST(Work, counts_a_microbatch_once_when_a_lease_comes_twice) {
  Work work(1);
  work.lease(0, ranged(0, 2));
  work.begin();
  work.finish(1);
  work.begin();
  work.lease(0, ranged(0, 3));
  work.finish(1);
  EXPECT_EQ(2U, work.begin()->microbatches.ranges().front().first);
  work.finish(1);
  EXPECT_FALSE(work.begin().has_value());
  EXPECT_TRUE(work.has_done_just(0, ranged(0, 3)));
}

TEST(Work, keeps_slots_apart) {
  Work work(1);
  work.lease(1, ranged(7, 1));
  work.lease(0, ranged(2, 1));
  while (work.begin()) work.finish(1);
  EXPECT_TRUE(work.has_done_just(0, ranged(2, 1)));
  EXPECT_TRUE(work.has_done_just(1, ranged(7, 1)));
  EXPECT_FALSE(work.has_done_just(2, ranged(7, 1)));
}

TEST(Work, can_be_leased_again_what_was_given_back) {
  Work work(1);
  work.lease(0, ranged(0, 2));
  work.drop_queued();
  EXPECT_TRUE(work.wants_more());
  work.lease(1, ranged(1, 1));
  EXPECT_EQ(1U, work.begin()->slot);
}

TEST(Work, has_not_done_just_these_while_more_is_held_in_the_slot) {
  Work work(7);
  work.lease(0, RangeSet(Range{0, 2}));
  work.begin();
  work.finish(1);
  EXPECT_FALSE(work.has_done_just(0, RangeSet(Range{0, 1}))) << "the other one would enter the same sum";
  work.begin();
  work.drop_queued();
  EXPECT_FALSE(work.has_done_just(0, RangeSet(Range{0, 1})));
  work.finish(1);
  EXPECT_TRUE(work.has_done_just(0, RangeSet(Range{0, 2})));
}

TEST(Work, takes_the_same_lease_once_more_when_its_slot_is_closed_but_nothing_new) {
  Work work(7);
  work.lease(0, ranged(0, 2));
  while (work.begin()) work.finish(1);
  work.close(0);
  EXPECT_TRUE(work.lease(0, ranged(1, 1)));
  EXPECT_TRUE(work.wants_more());
  EXPECT_FALSE(work.lease(0, ranged(1, 2)));
}

TEST(Work, knows_that_an_open_slot_has_other_than_these) {
  Work work(7);
  work.lease(0, ranged(0, 2));
  work.begin();
  EXPECT_FALSE(work.has_other_than(0, ranged(0, 2))) << "it is on its way";
  EXPECT_TRUE(work.has_other_than(0, ranged(0, 1)));
  EXPECT_TRUE(work.has_other_than(0, ranged(1, 2)));
  EXPECT_FALSE(work.has_other_than(0, ranged(0, 3)));
  EXPECT_FALSE(work.has_other_than(1, ranged(0, 1))) << "there is nothing";
  work.finish(1);
  work.begin();
  work.finish(1);
  work.close(0);
  EXPECT_FALSE(work.has_other_than(0, ranged(0, 2)));
  EXPECT_TRUE(work.has_other_than(0, ranged(0, 1))) << "others have its sum";
  EXPECT_TRUE(work.has_other_than(0, ranged(0, 3))) << "it can take nothing more";
  work.start_over();
  EXPECT_FALSE(work.has_other_than(0, ranged(0, 3))) << "the sum is lost here, others have it";
}

TEST(Work, that_starts_over_has_done_nothing_and_uses_no_slot_again) {
  Work work(7);
  work.lease(0, RangeSet(Range{0, 2}));
  work.begin();
  work.start_over();
  EXPECT_TRUE(work.idle() && work.wants_more());
  EXPECT_FALSE(work.lease(0, RangeSet(Range{4, 2})));
  EXPECT_EQ((std::vector<wire::SlotProgress>{{0, {}, {}}}), work.progress());
  EXPECT_TRUE(work.lease(1, RangeSet(Range{4, 2})));
}

TEST(Work, takes_no_lease_or_recall_for_news_that_a_later_one_overtook) {
  Work work(7);
  EXPECT_TRUE(work.is_news(0, 1));
  EXPECT_TRUE(work.is_news(0, 3));
  EXPECT_TRUE(work.is_news(0, 3)) << "the latest one changes nothing";
  EXPECT_FALSE(work.is_news(0, 2));
  EXPECT_TRUE(work.is_news(2, 1)) << "a later ballot";
  EXPECT_FALSE(work.is_news(0, 4));
}

}  // namespace
}  // namespace tw::swarm
