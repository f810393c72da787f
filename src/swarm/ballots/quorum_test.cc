// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/quorum.h"

#include "swarm/ballots/test_records.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

std::vector<wire::Member> first_members(std::uint64_t count) {
  std::vector<wire::Member> all;
  for (std::uint64_t id = 1; id <= count; ++id) all.push_back(member(id));
  return all;
}

std::set<PeerId> subset(const std::vector<wire::Member>& members, unsigned mask) {
  std::set<PeerId> peers;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if ((mask >> i & 1U) != 0) peers.insert(members[i].peer);
  }
  return peers;
}

TEST(Quorum, any_two_of_the_same_members_share_one) {
  for (std::uint64_t count = 1; count <= 8; ++count) {
    const std::vector<wire::Member> all = first_members(count);
    std::vector<unsigned> quorums;
    for (unsigned mask = 0; mask < 1U << count; ++mask) {
      if (is_quorum(all, subset(all, mask))) quorums.push_back(mask);
    }
    for (const unsigned a : quorums) {
      for (const unsigned b : quorums) ASSERT_NE(a & b, 0U) << count << " members, " << a << " and " << b;
    }
  }
}

TEST(Quorum, one_side_of_every_split_can_go_on) {
  for (std::uint64_t count = 1; count <= 8; ++count) {
    const std::vector<wire::Member> all = first_members(count);
    const unsigned whole = (1U << count) - 1;
    for (unsigned mask = 0; mask <= whole; ++mask) {
      ASSERT_NE(is_quorum(all, subset(all, mask)), is_quorum(all, subset(all, whole & ~mask)))
          << count << " members, " << mask;
    }
  }
}

TEST(Quorum, strangers_do_not_count) {
  EXPECT_FALSE(is_quorum(members({1, 2, 3}), {PeerId{1}, PeerId{8}, PeerId{9}}));
  EXPECT_FALSE(is_quorum({}, {PeerId{1}}));
}

TEST(Quorum, an_exact_half_needs_the_first_member) {
  EXPECT_TRUE(is_quorum(members({7, 1}), {PeerId{7}}));
  EXPECT_FALSE(is_quorum(members({7, 1}), {PeerId{1}}));
}

TEST(Ballot, the_next_one_of_a_member_is_the_smallest_that_it_owns) {
  for (std::uint64_t count = 1; count <= 8; ++count) {
    const std::vector<wire::Member> all = first_members(count);
    for (Ballot above = 0; above < 20; ++above) {
      std::set<Ballot> next;
      for (const wire::Member& m : all) {
        const Ballot ballot = next_ballot(all, m.peer, above);
        EXPECT_EQ(m, ballot_owner(all, ballot));
        EXPECT_GT(ballot, above);
        EXPECT_LE(ballot, above + count);
        next.insert(ballot);
      }
      EXPECT_EQ(count, next.size()) << "two of " << count << " members lead with one ballot";
    }
  }
}

TEST(Ballot, the_first_of_a_round_belongs_to_the_first_member) {
  EXPECT_EQ(member(7), ballot_owner(members({7, 1, 3}), 0));
}

TEST(Record, of_a_run_that_begins_anew_repeats_the_round_with_new_members) {
  wire::Record record =
      genesis(digest_of(std::string("run")), digest_of(std::string("seed")), members({1, 2}));
  EXPECT_EQ(0U, record.round);
  EXPECT_EQ(0U, record.samples_total());
  record.round = 5;
  record.first_sample = 256;
  record.samples = 64;
  record.last = true;
  const wire::Record again = swarm::restarted(record, members({9}));
  EXPECT_EQ(5U, again.round);
  EXPECT_EQ(320U, again.samples_total());
  EXPECT_EQ(digest_of(record), again.parent);
  EXPECT_EQ(members({9}), again.members);
  EXPECT_TRUE(again.minority);
  EXPECT_FALSE(again.last);
}

}  // namespace
}  // namespace tw::swarm
