// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "swarm/test_swarm.h"

/// Peers whose program is busy: the thread that computes and applies does not come.
namespace tw::swarm {
namespace {

using wire::Presence;
using namespace std::chrono_literals;

std::vector<PeerId> members_after(Pool& pool, std::uint64_t id) {
  std::vector<PeerId> peers;
  for (const wire::Member& m : pool.peer(id).applied.back().members) peers.push_back(m.peer);
  return peers;
}

/// Its thread goes, or is back and applies what waited for it.
void set_presence(Pool& pool, std::uint64_t id, Presence presence) {
  pool.peer(id).thread_is_away = presence != Presence::here;
  pool.at(id).set_presence(pool.now(), presence);
  pool.peer(id).apply(pool.now());
}

TEST(SwarmBusy, follows_and_votes_without_its_thread) {
  for (const std::uint64_t busy : {1, 2}) {
    const std::uint64_t other = 3 - busy;
    Pool pool;
    pool.start_all(2);
    ASSERT_TRUE(pool.reaches(1, 1));
    set_presence(pool, busy, Presence::away);
    const Round then = pool.round_of(other);
    EXPECT_TRUE(pool.comes([&] { return pool.round_of(other) >= then + 3; }, 9s)) << "one works for two";
    EXPECT_EQ(PeerId{other}, pool.at(other).view().leader()) << "it knows the parameters of the round";
    EXPECT_THAT(members_after(pool, other), testing::ElementsAre(PeerId{other}, PeerId{busy}));
    EXPECT_TRUE(pool.peer(busy).catch_ups.empty());
    set_presence(pool, busy, Presence::here);
    ASSERT_TRUE(pool.comes([&] { return pool.peer(busy).computing.has_value(); }, 3s));
    EXPECT_TRUE(pool.peer(busy).catch_ups.empty()) << "it has the parameters of the others";
  }
}

TEST(SwarmBusy, votes_for_the_record_that_does_not_name_it) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 1));
  for (const std::uint64_t full : {1, 3}) set_presence(pool, full, Presence::full);
  const Round then = pool.round_of(2);
  ASSERT_TRUE(pool.comes([&] { return pool.round_of(2) >= then + 3; }, 15s)) << "two of three are away";
  EXPECT_THAT(members_after(pool, 2), testing::ElementsAre(PeerId{2}));
  for (const wire::Record& record : pool.peer(2).applied) EXPECT_FALSE(record.minority);
}

TEST(SwarmBusy, leads_where_all_are_busy) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 1));
  for (const std::uint64_t id : {1, 2, 3}) set_presence(pool, id, Presence::away);
  pool.run_for(3s);
  EXPECT_EQ(PeerId{1}, pool.at(3).view().leader());
  set_presence(pool, 3, Presence::here);
  EXPECT_TRUE(pool.comes([&] { return pool.at(3).leading().leads(); }, 1s));
}

TEST(SwarmBusy, leads_rather_than_one_that_does_not_follow_even_at_risk) {
  Pool pool;
  pool.start_all(2);
  ASSERT_TRUE(pool.reaches(1, 1));
  pool.at(2).set_at_risk(pool.now(), true);
  set_presence(pool, 1, Presence::away);
  EXPECT_TRUE(pool.comes([&] { return pool.at(2).leading().leads(); }, 1s));
}

}  // namespace
}  // namespace tw::swarm
