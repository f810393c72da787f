// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/shares.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/prng.h"
#include "swarm/shares/bound.h"

namespace tw::swarm {
namespace {

using wire::Share;

std::vector<PeerId> some_peers(Prng& prng, std::uint64_t most) {
  std::vector<PeerId> peers;
  const std::uint64_t n = 1 + prng.below(most);
  for (std::uint64_t i = 0; i < n; ++i) peers.push_back(PeerId{10 * i + prng.below(10)});
  return peers;
}

std::uint64_t owned(const std::vector<Share>& shares, PeerId owner) {
  std::uint64_t count = 0;
  for (const Share& share : shares) count += share.owner == owner ? share.count : 0;
  return count;
}

PeerId owner_of(const std::vector<Share>& shares, std::uint64_t segment) {
  for (const Share& share : shares) {
    if (share.first <= segment && segment < share.first + share.count) return share.owner;
  }
  return PeerId{};
}

TEST(Shares, equal_ones_cover_everything_and_differ_by_one_segment_at_most) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    const std::vector<PeerId> owners = some_peers(prng, 9);
    const std::uint64_t segments = prng.below(30);
    const std::vector<Share> shares = equal_shares(segments, owners);
    ASSERT_TRUE(covers(shares, segments)) << "seed " << seed;
    for (const PeerId owner : owners) {
      ASSERT_GE(owned(shares, owner), segments / owners.size()) << "seed " << seed;
      ASSERT_LE(owned(shares, owner), segments / owners.size() + 1) << "seed " << seed;
    }
  }
}

TEST(Shares, only_those_of_owners_that_are_gone_move) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    std::vector<PeerId> owners = some_peers(prng, 9);
    const std::uint64_t segments = 1 + prng.below(60);
    std::vector<Share> before = equal_shares(segments, owners);
    while (owners.size() > 1) {
      for (Share& share : before) share.sealed = prng.chance(0.5);
      const PeerId gone = owners[prng.below(owners.size())];
      std::erase(owners, gone);
      const std::vector<Share> after = reown(before, owners);
      ASSERT_TRUE(covers(after, segments)) << "seed " << seed;
      std::uint64_t most = 0;
      std::uint64_t least = segments;
      for (const PeerId owner : owners) {
        most = std::max(most, owned(after, owner) - owned(before, owner));
        least = std::min(least, owned(after, owner) - owned(before, owner));
      }
      ASSERT_LE(most - least, 1U) << "the successors get equal parts, seed " << seed;
      for (std::uint64_t s = 0; s < segments; ++s) {
        const PeerId owner = owner_of(before, s);
        ASSERT_TRUE(owner == gone || owner == owner_of(after, s)) << "seed " << seed;
      }
      before = after;
    }
  }
}

std::vector<Participant> some_participants(Prng& prng, std::uint64_t most) {
  std::vector<Participant> participants;
  for (const PeerId peer : some_peers(prng, most)) {
    const double rate = 1e6 * (1 + prng.uniform() * 100);
    participants.push_back(
        {peer, prng.chance(0.8), prng.chance(0.9) ? 1U : 0U, {rate, rate * (0.5 + prng.uniform()), {}}});
  }
  participants.front().owns = true;
  return participants;
}

TEST(Shares, weighted_ones_cover_everything_and_are_the_best_parts_in_whole_segments) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    const std::vector<Participant> participants = some_participants(prng, 9);
    const std::uint64_t segments = prng.below(100);
    const std::vector<Share> shares = weighted_shares(segments, participants);
    ASSERT_EQ(shares, weighted_shares(segments, participants)) << "seed " << seed;
    ASSERT_TRUE(covers(shares, segments)) << "seed " << seed;
    const std::vector<double> parts = best_split(participants).parts;
    for (std::size_t i = 0; i < participants.size(); ++i) {
      const auto count = static_cast<double>(owned(shares, participants[i].peer));
      ASSERT_NEAR(count, parts[i] * static_cast<double>(segments), 1 + 1e-6) << "seed " << seed;
      ASSERT_TRUE(participants[i].owns || count == 0) << "seed " << seed;
    }
  }
}

TEST(Shares, of_a_tiny_line_are_none) {
  const wire::Bandwidth fast{1e8, 1e8, {}}, tiny{1e3, 1e3, {}};
  const std::vector<Participant> participants = {
      {PeerId{1}, true, 1, fast}, {PeerId{2}, true, 1, tiny}, {PeerId{3}, true, 1, fast}};
  const std::vector<Share> expected = {{PeerId{1}, 0, 500}, {PeerId{3}, 500, 500}};
  EXPECT_EQ(weighted_shares(1000, participants), expected);
}

TEST(Shares, change_only_when_it_pays) {
  const auto participants = [](double third) {
    std::vector<Participant> all;
    for (const double rate : {1e8, 1e8, third, 1e8}) {
      all.push_back({PeerId{all.size() + 1}, true, 1, {rate, rate, {}}});
    }
    return all;
  };
  std::vector<Share> before = weighted_shares(1000, participants(1e8));
  before[2].sealed = true;
  EXPECT_EQ(weighted_shares(1000, participants(0.97e8), before), weighted_shares(1000, participants(1e8)));
  EXPECT_EQ(weighted_shares(1000, participants(0.8e8), before), weighted_shares(1000, participants(0.8e8)));
  std::vector<Participant> without = participants(0.97e8);
  without[2].owns = false;
  EXPECT_EQ(owned(weighted_shares(1000, without, before), PeerId{3}), 0U);
}

TEST(Shares, that_move_go_to_whom_has_room) {
  std::vector<Participant> participants;
  for (const double rate : {1e8, 2e7, 1e8, 1e8})
    participants.push_back({PeerId{participants.size() + 1}, true, 1, {rate, rate, {}}});
  const std::vector<Share> before = equal_shares(400, {PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}});
  participants[3].owns = false;
  const std::vector<Share> after = reown(before, participants);
  EXPECT_EQ(owned(after, PeerId{1}), 150U);
  EXPECT_EQ(owned(after, PeerId{2}), 100U) << "as before";
  EXPECT_EQ(owned(after, PeerId{3}), 150U);
}

TEST(Shares, a_moved_share_is_not_sealed_and_the_others_stay_so) {
  const std::vector<Share> before = {{PeerId{1}, 0, 4, true}, {PeerId{2}, 4, 4, true}};
  const std::vector<Share> after = {{PeerId{1}, 0, 4, true}, {PeerId{1}, 4, 4, false}};
  EXPECT_EQ(reown(before, {PeerId{1}}), after);
}

TEST(Shares, single_segments_move_and_the_others_stay) {
  const std::vector<Share> before = {{PeerId{1}, 0, 4, true}, {PeerId{2}, 4, 6}};
  const std::vector<Participant> participants = {{PeerId{1}}, {PeerId{2}, false}, {PeerId{3}}};
  RangeSet segments(Range{2, 1});
  segments.add(Range{7, 50});
  const std::vector<Share> after = {{PeerId{1}, 0, 2, true}, {PeerId{1}, 2, 1}, {PeerId{1}, 3, 1, true},
                                    {PeerId{2}, 4, 3},       {PeerId{1}, 7, 1}, {PeerId{3}, 8, 2}};
  EXPECT_EQ(moved(before, segments, participants), after);
}

TEST(Shares, gaps_overlaps_and_overhangs_do_not_cover) {
  const PeerId p{1};
  EXPECT_TRUE(covers({}, 0));
  EXPECT_TRUE(covers({{p, 0, 2}, {p, 2, 0}, {p, 2, 3}}, 5));
  EXPECT_FALSE(covers({}, 1));
  EXPECT_FALSE(covers({{p, 0, 2}, {p, 3, 2}}, 5));
  EXPECT_FALSE(covers({{p, 0, 3}, {p, 2, 3}}, 5));
  EXPECT_FALSE(covers({{p, 0, 2}, {p, 2, 4}}, 5));
  EXPECT_FALSE(covers({{p, 2, 3}, {p, 0, 2}}, 5));
  EXPECT_FALSE(covers({{p, 0, 2}, {p, 2, UINT64_MAX}, {p, 1, 4}}, 5));
}

}  // namespace
}  // namespace tw::swarm
