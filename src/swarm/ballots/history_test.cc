// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/history.h"

#include <gtest/gtest.h>

#include "swarm/ballots/lineage.h"
#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using News = History::News;

/// The record after `head`, with this many samples.
wire::Record after(const wire::Record& head, std::uint64_t samples = 64) {
  wire::Record next = head;
  next.round = head.round + 1;
  next.parent = digest_of(head);
  next.samples = samples;
  next.first_sample = head.first_sample + head.samples;
  next.mean = kMean;
  continue_lineage(next, head);
  return next;
}

struct Chain : testing::Test {
  Chain() { history.begin(head); }

  const wire::Record head = head_of(members({1, 2, 3}));
  History history;
};

TEST_F(Chain, goes_on_with_what_was_voted_for) {
  EXPECT_EQ(News::next, history.judge(after(head), after(head)));
  history.extend(after(head));
  EXPECT_EQ(after(head), history.head());
  EXPECT_EQ(digest_of(after(head)), history.digest());
  EXPECT_TRUE(history.is_next(8));
}

TEST_F(Chain, takes_no_record_that_differs_from_what_was_voted_for_in_any_member) {
  wire::Record other = after(head);
  other.members = members({1, 2});
  EXPECT_EQ(News::other, history.judge(after(head), other));
  EXPECT_EQ(News::other, history.judge(after(head), std::nullopt));
}

TEST_F(Chain, takes_no_record_of_a_later_round_or_of_another_history) {
  const wire::Record later = after(after(head));
  EXPECT_EQ(News::other, history.judge(later, later));
  wire::Record elsewhere = head;
  elsewhere.majority_samples += 64;
  EXPECT_EQ(News::other, history.judge(after(elsewhere), after(elsewhere)));
  EXPECT_FALSE(history.continues(later));
  EXPECT_FALSE(history.continues(after(elsewhere)));
  EXPECT_TRUE(history.continues(after(head)));
}

TEST_F(Chain, knows_which_process_has_been_a_member_for_longest) {
  const auto go_on_with = [&](const std::vector<wire::Member>& of_next) {
    wire::Record next = after(*history.head());
    next.members = of_next;
    history.extend(next);
    return ids_of(history.by_age());
  };
  using Ids = std::vector<PeerId>;
  EXPECT_EQ(ids_of(history.by_age()), (Ids{PeerId{1}, PeerId{2}, PeerId{3}}));
  EXPECT_EQ(go_on_with(members({4, 3, 2})), (Ids{PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}}));
  EXPECT_EQ(go_on_with(members({2, 1})), (Ids{PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}}));  // it was busy
  std::vector<wire::Member> restarted = members({2, 1});
  ++restarted[0].incarnation;
  EXPECT_EQ(go_on_with(restarted), (Ids{PeerId{1}, PeerId{3}, PeerId{4}, PeerId{2}}));
}

TEST_F(Chain, knows_what_goes_behind_it) {
  const wire::Record next = after(head);
  history.extend(next);
  EXPECT_EQ(News::old, history.judge(next, next));
  EXPECT_EQ(News::old, history.judge(head, head));
}

TEST_F(Chain, has_parameters_once_the_update_of_its_head_is_applied) {
  EXPECT_FALSE(history.parameters().has_value());
  history.applied(6, kParameters);
  EXPECT_EQ(kParameters, history.parameters());
  history.extend(after(head));
  EXPECT_FALSE(history.parameters().has_value());
}

TEST_F(Chain, tells_a_state_that_is_taken_anew_from_another_one) {
  EXPECT_TRUE(history.begin(head));
  EXPECT_FALSE(history.begin(after(head)));
}

TEST_F(Chain, is_extended_by_no_record_that_does_not_follow) {
  EXPECT_DEATH(history.extend(after(after(head))), "continues");
  EXPECT_DEATH(history.applied(5, kParameters), "round");
}

TEST(History, begins_with_the_parameters_from_the_seed) {
  History history;
  EXPECT_FALSE(history.is_next(0));
  history.fresh(kParameters);
  history.begin(genesis(kRun, kParameters, members({1})));
  EXPECT_EQ(kParameters, history.parameters()) << "the first record has no update";
  EXPECT_TRUE(history.is_next(1));
}

TEST(History, has_no_other_parameters_than_those_of_its_head) {
  History history;
  history.fresh(kParameters);
  history.begin(head_of(members({1, 2})));
  EXPECT_DEATH(history.fresh(kParameters), "head_");
}

}  // namespace
}  // namespace tw::swarm
