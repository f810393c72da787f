// SPDX-License-Identifier: Apache-2.0
//
// A founder that is restarted with its old command line: it has no peer to dial.

#include "swarm/ballots/quorum.h"
#include "swarm/test_swarm.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

TEST(SwarmReturn, founder_takes_the_history_that_it_hears_of) {
  for (const bool returns : {false, true}) {
    Pool pool({.wait_for = 2, .patience = 20s});
    pool.start(1);
    pool.start(2);
    ASSERT_TRUE(pool.reaches(2, 3));
    pool.kill(1);
    pool.run_for(20ms);
    const Round then = pool.round_of(2);
    pool.start(1, returns);
    ASSERT_TRUE(pool.comes([&] { return pool.at(1).peer_state() == wire::PeerState::ready; }, 10s));
    EXPECT_EQ(then, pool.round_of(1));
    ASSERT_TRUE(pool.reaches(1, then + 3)) << "once the patience is over, the one that is left goes on";
    EXPECT_EQ(wire::PeerState::member, pool.at(1).peer_state());
    EXPECT_TRUE(pool.peer(2).catch_ups.empty()) << "and has given up nothing";
  }
}

TEST(SwarmReturn, founder_that_returns_begins_nothing_before_it_is_told_to) {
  Pool pool({.wait_for = 1});
  pool.start(1, true);
  pool.run_for(1min);
  EXPECT_FALSE(pool.at(1).head());
  pool.at(1).go_on_alone(pool.now());
  ASSERT_TRUE(pool.at(1).head());
  EXPECT_TRUE(pool.at(1).head()->minority) << "marked";
  ASSERT_TRUE(pool.reaches(1, 3));
}

TEST(SwarmReturn, lone_history_of_any_length_gives_way_to_one_that_had_members) {
  Pool pool({.wait_for = 1, .patience = 1s});
  pool.start(1);
  pool.start(2);
  ASSERT_TRUE(pool.comes([&] { return pool.at(2).peer_state() == wire::PeerState::member; }));
  ASSERT_TRUE(pool.reaches(2, 3));
  pool.kill(1);
  pool.sever(1, 2);
  const Round then = pool.round_of(2);
  pool.peer(2).microbatch_takes = 2s;
  pool.start(1);
  ASSERT_TRUE(pool.reaches(1, then + 6)) << "nobody is there: it begins";
  ASSERT_GT(pool.round_of(1), pool.round_of(2));
  pool.heal();
  ASSERT_TRUE(pool.comes(
      [&] { return pool.at(1).peer_state() == wire::PeerState::member && pool.at(1).head()->had_company; }));
  EXPECT_EQ(1U, pool.peer(1).catch_ups.size());
  EXPECT_EQ(1U, pool.peer(2).catch_ups.size()) << "to join, in the beginning";
  EXPECT_GE(pool.round_of(2), then);
}

TEST(SwarmReturn, history_begun_anew_from_a_round_takes_those_along_that_stand_there) {
  Pool pool({.wait_for = 2, .patience = 20s});
  pool.start(1);
  pool.start(2);
  ASSERT_TRUE(pool.reaches(2, 3));
  pool.start(3);
  pool.drop = [](auto, auto, const wire::Message& message) {
    return std::holds_alternative<wire::Plan>(message);
  };
  ASSERT_TRUE(pool.comes([&] { return pool.at(3).peer_state() == wire::PeerState::ready; }));
  pool.kill(2);
  pool.kill(1);
  pool.drop = [](auto, auto, const auto&) { return false; };
  pool.run_for(20ms);
  pool.start(1, true);
  ASSERT_TRUE(
      pool.comes([&] { return pool.at(1).view().is_orphaned() && pool.at(3).view().is_orphaned(); }, 10s));
  const wire::Record head = *pool.at(1).head();
  const wire::Record anew = begun_anew(head, {pool.process(1)});
  pool.peer(1).applied.push_back(anew);
  pool.at(1).begin(pool.now(), anew, digest_of("after " + to_string(digest_of(anew))));
  ASSERT_TRUE(pool.reaches(3, head.round + 3));
  ASSERT_EQ(3U, pool.peer(3).catch_ups.size())
      << "to join, to begin anew, and once more: the first round was decided";
  EXPECT_EQ(1U, pool.peer(1).catch_ups.size()) << "to join";
}

// The leader dies before it gets the votes of the others, which voted and take the state of their head anew.
TEST(SwarmReturn, goes_on_after_its_patience_when_all_who_voted_have_lost_the_mean) {
  Pool pool({.patience = 5s});
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(3, 2));
  std::set<std::uint64_t> voted;
  pool.drop = [&](std::uint64_t from, std::uint64_t to, const wire::Message& message) {
    const bool is_vote = std::holds_alternative<wire::Vote>(message);
    if (is_vote) voted.insert(from);
    return is_vote && to == 1;
  };
  ASSERT_TRUE(pool.comes([&] { return voted.size() == 2; }));
  pool.kill(1);
  const Round then = pool.round_of(2);
  pool.mean_stays_away = [&](std::uint64_t id) { return !pool.peer(id).plan->draft.minority; };
  for (const std::uint64_t id : {2, 3}) {
    const wire::Record head = *pool.at(id).head();
    pool.peer(id).plan.reset();
    pool.at(id).begin(pool.now(), head, digest_of("after " + to_string(digest_of(head))));
  }
  pool.run_for(4s);
  EXPECT_EQ(then, pool.round_of(2)) << "1 may have decided";
  ASSERT_TRUE(pool.reaches(2, then + 1));
  EXPECT_TRUE(pool.at(2).head()->minority);
}

}  // namespace
}  // namespace tw::swarm
