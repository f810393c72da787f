// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/lineage.h"

#include <gtest/gtest.h>

#include "swarm/ballots/quorum.h"
#include "swarm/ballots/test_records.h"
#include "wire/rank.h"

namespace tw::swarm {
namespace {

using wire::Record;

/// The record 64 samples after `head`, with these members.
Record after_round_of(const Record& head, const std::vector<std::uint64_t>& ids, bool minority = false) {
  Record next = head;
  ++next.round;
  next.parent = digest_of(head);
  next.first_sample += head.samples;
  next.samples = 64;
  next.members = members(ids);
  next.minority = minority;
  continue_lineage(next, head);
  return next;
}

std::vector<PeerId> ids(std::initializer_list<std::uint64_t> values) {
  std::vector<PeerId> all;
  for (const std::uint64_t value : values) all.push_back(PeerId{value});
  return all;
}

TEST(Lineage, counts_what_a_majority_decides) {
  const Record first = after_round_of(genesis(kRun, kParameters, members({1, 2, 3})), {1, 2, 3});
  const Record second = after_round_of(first, {1, 2, 4});
  EXPECT_EQ(64U, first.majority_samples);
  EXPECT_EQ(128U, second.majority_samples);
  EXPECT_TRUE(second.awaited.empty());
  EXPECT_TRUE(goes_before(rank_of(second), rank_of(first)));
}

TEST(Lineage, of_a_peer_that_goes_on_alone_counts_no_more_though_it_is_the_majority_of_its_own_last_record) {
  const Record split = head_of(members({1, 2, 3, 4}));
  Record alone = after_round_of(split, {4}, true);
  for (int round = 0; round < 60; ++round) alone = after_round_of(alone, {4});
  EXPECT_EQ(split.majority_samples, alone.majority_samples);
  EXPECT_EQ(ids({1, 2, 3, 4}), alone.awaited);
  const Record others = after_round_of(split, {1, 2, 3});
  EXPECT_TRUE(goes_before(rank_of(others), rank_of(alone))) << "61 rounds against one";
  EXPECT_FALSE(goes_before(rank_of(alone), rank_of(others)));
}

TEST(Lineage, goes_on_to_count_after_most_of_the_awaited_peers_take_part_again) {
  const Record split = head_of(members({1, 2, 3, 4}));
  Record few = after_round_of(after_round_of(split, {4}, true), {4, 5, 6, 7});
  EXPECT_EQ(ids({1, 2, 3, 4}), few.awaited) << "those who came since are no majority of them";
  few = after_round_of(few, {4, 5, 6, 7, 2});
  EXPECT_FALSE(few.awaited.empty()) << "half without the first";
  const Record half = after_round_of(few, {4, 5, 6, 7, 1});
  EXPECT_TRUE(half.awaited.empty()) << "half with the first";
  const Record most = after_round_of(few, {4, 2, 3});
  EXPECT_TRUE(most.awaited.empty());
  EXPECT_EQ(384U, most.majority_samples) << "that round itself was decided before they came";
  EXPECT_EQ(448U, after_round_of(most, {4, 2, 3}).majority_samples);
  EXPECT_EQ(384U, after_round_of(few, {4}, true).majority_samples);
}

TEST(Lineage, that_begins_anew_from_a_checkpoint_gives_way_to_the_record_itself_and_goes_before_older_ones) {
  const Record saved = head_of(members({1, 2, 3}));
  Record older = saved;
  older.round = 4;
  older.first_sample = 192;
  older.majority_samples = 256;
  const Record again = swarm::restarted(saved, members({2}));
  EXPECT_TRUE(goes_before(rank_of(saved), rank_of(again)));
  EXPECT_TRUE(goes_before(rank_of(again), rank_of(swarm::restarted(older, members({3})))));
  EXPECT_EQ(ids({1, 2, 3}), again.awaited);
  EXPECT_TRUE(swarm::restarted(saved, members({2, 1})).awaited.empty()) << "counted by id";
  const Record anew = begun_anew(saved, members({2}));
  EXPECT_TRUE(goes_before(rank_of(anew), rank_of(saved))) << "no member has the record any more";
  const Record twice = swarm::restarted(again, members({2}));
  EXPECT_EQ(again.majority_samples, twice.majority_samples);
  EXPECT_EQ(again.awaited, twice.awaited);
}

TEST(Lineage, of_a_lone_peer_gives_way_to_one_that_had_members_however_much_it_counts) {
  Record lone = head_of(members({1}));
  lone.samples = 100'000;
  lone.majority_samples = lone.samples_total();
  Record survivor = after_round_of(head_of(members({1, 2})), {2}, true);
  EXPECT_TRUE(survivor.had_company);
  EXPECT_FALSE(lone.had_company);
  EXPECT_TRUE(goes_before(rank_of(survivor), rank_of(lone)));
}

TEST(Lineage, that_a_returning_peer_began_from_nothing_never_counts_as_a_majoritys) {
  Record begun = genesis(kRun, kParameters, members({1, 2}));
  begun.minority = true;
  begun.awaited = {kUnknownPeer};
  const Record first = after_round_of(begun, {1, 2});
  EXPECT_EQ(0U, after_round_of(first, {1, 2}).majority_samples);
}

}  // namespace
}  // namespace tw::swarm
