// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm.h"

#include <gmock/gmock.h>

#include "base/prng.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"
#include "swarm/test_swarm.h"

namespace tw::swarm {
namespace {

using wire::Record;
using namespace std::chrono_literals;

bool has_event(const Pool::Peer& peer, world::Phase phase, std::uint64_t about) {
  return std::any_of(peer.events.begin(), peer.events.end(),
                     [&](const world::Event& e) { return e.phase() == phase && e.peer == PeerId{about}; });
}

std::vector<wire::Member> processes(const Pool& pool, const std::vector<std::uint64_t>& ids) {
  std::vector<wire::Member> all;
  for (const std::uint64_t id : ids) all.push_back(pool.process(id));
  return all;
}

/// If two peers applied the same unmarked round, its record was the same.
::testing::AssertionResult one_history(Pool& pool, const std::vector<std::uint64_t>& ids) {
  std::map<Round, Record> history;
  for (const std::uint64_t id : ids) {
    for (const Record& record : pool.peer(id).applied) {
      const auto [known, fresh] = history.try_emplace(record.round, record);
      if (!fresh && known->second != record)
        return ::testing::AssertionFailure() << "peer " << id << " has another round " << record.round;
    }
  }
  return ::testing::AssertionSuccess();
}

TEST(Swarm, begins_the_history_when_the_founder_has_company) {
  Pool pool;
  pool.start(1);
  pool.start(2);
  pool.run_for(2s);
  EXPECT_FALSE(pool.at(1).head().has_value());
  EXPECT_EQ("waiting for 1 more peer to begin: 2 of 3 are here", text_of(pool.at(1).waiting()));
  EXPECT_EQ("waiting for peer 1: the first round to begin", text_of(pool.at(2).waiting()));
  pool.start(3);
  ASSERT_TRUE(pool.comes([&] { return pool.at(3).head().has_value(); }, 2s));
  const Record& genesis = *pool.at(3).head();
  EXPECT_EQ(0U, genesis.round);
  EXPECT_EQ(processes(pool, {1, 2, 3}), genesis.members);
  EXPECT_EQ(wire::PeerState::member, pool.at(3).peer_state());
}

// All have the addresses of the token, and the second of them may already know of a run.
TEST(Swarm, the_peer_at_the_first_address_of_the_token_founds_when_the_others_know_of_no_run) {
  Pool pool({.wait_for = 1, .token = {1, 2}});
  pool.start(2);
  pool.start(3);
  pool.run_for(2s);
  EXPECT_EQ(Wait::Kind::founder, pool.at(3).waiting().kind);
  EXPECT_THAT(text_of(pool.at(3).waiting()), testing::HasSubstr("listens at the first address of its token"));
  EXPECT_EQ(0U, pool.round_of(2));
  pool.start(1);
  ASSERT_TRUE(pool.reaches(3, 3));
  pool.kill(1);
  ASSERT_TRUE(pool.reaches(3, 6));
  pool.start(1);
  ASSERT_TRUE(pool.reaches(1, 8));
  EXPECT_EQ(0U, pool.at(1).head()->restarts);
  EXPECT_FALSE(pool.at(1).head()->minority);
  EXPECT_THAT(pool.peer(1).catch_ups, testing::SizeIs(1));
  const auto began = [](const world::Event& e) { return e.phase() == world::Phase::lead && e.round == 1; };
  EXPECT_TRUE(std::ranges::none_of(pool.peer(1).events, began)) << "it founds nothing beside the run";
}

TEST(Swarm, knots_the_mesh_from_one_address_and_measures_round_trips) {
  Pool pool;
  pool.start_all(4);
  pool.run_for(2s);
  for (const std::uint64_t id : {1, 2, 3, 4})
    EXPECT_EQ(3U, pool.at(id).view().membership.roster().open_peers().size());
  EXPECT_GE(pool.at(2).view().membership.round_trip(PeerId{3}), 5ms);
  EXPECT_LE(pool.at(2).view().membership.round_trip(PeerId{3}), 20ms);
}

TEST(Swarm, commits_round_after_round_with_whole_batches_everywhere) {
  Pool pool;
  pool.start_all(3);
  pool.peer(3).microbatch_takes = 600ms;
  ASSERT_TRUE(pool.reaches(1, 10));
  pool.run_for(100ms);
  EXPECT_TRUE(one_history(pool, {1, 2, 3}));
  std::map<std::uint64_t, std::uint64_t> samples;
  for (const Record& record : pool.peer(1).applied) {
    EXPECT_TRUE(covers_the_batch(record, 16));
    for (const wire::Contribution& c : record.contributors) samples[c.peer.value] += c.samples;
  }
  EXPECT_GT(samples[1], 2 * samples[3]) << "who is slower does less";
  EXPECT_TRUE(pool.peer(1).catch_ups.empty() && pool.peer(3).catch_ups.empty());
}

TEST(Swarm, computes_elsewhere_what_one_peer_cannot_have) {
  Pool pool;
  pool.lacks = [](std::uint64_t id, std::uint64_t sample) { return id != 3 && sample % 64 == 10; };
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 5));
  EXPECT_TRUE(one_history(pool, {1, 2, 3}));
  for (const Record& record : pool.peer(1).applied) {
    EXPECT_TRUE(covers_the_batch(record, 16));
    for (const wire::Contribution& c : record.contributors)
      EXPECT_EQ(c.peer == PeerId{3}, c.microbatches.contains(2)) << record.round;
  }
}

TEST(Swarm, stops_everywhere_with_the_reason_when_three_peers_lack_a_sample) {
  Pool pool;
  pool.lacks = [](std::uint64_t id, std::uint64_t sample) { return id != 4 && sample == 3 * 64 + 10; };
  pool.start_all(4);
  pool.peer(4).microbatch_takes = 3s;  // too slow: it cannot try
  ASSERT_TRUE(pool.comes([&] { return !pool.peer(4).ends.empty(); }));
  pool.run_for(100ms);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(1U, pool.peer(id).ends.size()) << id;
    EXPECT_EQ(
        pool.peer(id).ends[0],
        "no peer can compute a sample of round 4 (peers that tried: 1, 2, 3): a.tar, bytes 0-9: sample 202");
    EXPECT_EQ(3U, pool.round_of(id));
  }
}

TEST(Swarm, goes_on_without_a_sample_when_three_peers_lack_it_and_one_of_them_may) {
  Pool pool;
  std::map<std::uint64_t, int> tried;
  pool.lacks = [&](std::uint64_t id, std::uint64_t sample) {
    return id != 4 && sample == 3 * 64 + 10 && ++tried[id] > 0;
  };
  pool.skip = {2};
  pool.start_all(4);
  pool.peer(4).microbatch_takes = 3s;  // too slow: it cannot try
  ASSERT_TRUE(pool.reaches(1, 5));
  EXPECT_EQ(tried, (std::map<std::uint64_t, int>{{1, 1}, {2, 1}, {3, 1}})) << "nobody skips before the third";
  EXPECT_TRUE(one_history(pool, {1, 2, 3}));
  for (const wire::Contribution& c : pool.peer(1).applied.at(3).contributors)
    EXPECT_EQ(c.peer == PeerId{2}, c.microbatches.contains(2)) << "that one may";
}

TEST(Swarm, of_one_peer_goes_on_without_a_sample_where_it_may) {
  Pool pool;
  pool.lacks = [](std::uint64_t, std::uint64_t sample) { return sample == 3 * 64 + 10; };
  pool.skip = {1};
  pool.start_all(1);
  ASSERT_TRUE(pool.reaches(1, 5));
}

TEST(Swarm, side_without_a_majority_gives_up_only_when_it_goes_on_alone) {
  Pool pool({.patience = 20s});
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 2));
  pool.lacks = [](std::uint64_t, std::uint64_t) { return true; };
  pool.kill(2);
  pool.kill(3);
  pool.run_for(15s);
  EXPECT_TRUE(pool.peer(1).ends.empty());
  EXPECT_TRUE(pool.comes([&] { return !pool.peer(1).ends.empty(); }));
}

TEST(Swarm, new_leader_hears_what_others_cannot_compute) {
  Pool pool;
  std::set<std::uint64_t> tried;
  pool.lacks = [&](std::uint64_t id, std::uint64_t sample) {
    return sample == 3 * 64 + 10 && (tried.insert(id), true);
  };
  pool.start_all(3);
  ASSERT_TRUE(pool.comes([&] { return !tried.empty(); }));
  pool.kill(1);
  ASSERT_TRUE(pool.comes([&] { return !pool.peer(2).ends.empty() && !pool.peer(3).ends.empty(); }));
  EXPECT_EQ(pool.peer(2).ends, pool.peer(3).ends);
  EXPECT_EQ(pool.peer(2).ends,
            std::vector<std::string>{"no peer can compute a sample of round 4 (peers that tried: 2, 3): "
                                     "a.tar, bytes 0-9: sample 202"});
}

TEST(Swarm, joiner_works_for_the_round_that_it_finds_and_is_a_member_from_its_record_on) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 3));
  pool.start(4);
  ASSERT_TRUE(pool.comes([&] { return pool.at(4).peer_state() == wire::PeerState::member; }));
  ASSERT_TRUE(pool.reaches(4, pool.round_of(4) + 3));
  EXPECT_EQ(1U, pool.peer(4).catch_ups.size());
  const std::vector<Record>& history = pool.peer(4).applied;
  EXPECT_FALSE(is_member(history[0].members, PeerId{4})) << "the state it began with";
  EXPECT_TRUE(is_member(history[1].members, PeerId{4})) << "it followed this round";
  EXPECT_TRUE(contributes(history[1], 4));
  EXPECT_EQ(processes(pool, {1, 2, 3, 4}), history[2].members) << "longest-lived first";
  EXPECT_TRUE(has_event(pool.peer(1), world::Phase::join, 4));
  EXPECT_TRUE(one_history(pool, {1, 2, 3, 4}));
}

TEST(Swarm, next_member_leads_with_a_higher_ballot_when_the_leader_dies) {
  Pool pool;
  pool.start_all(4);
  ASSERT_TRUE(pool.reaches(2, 3));
  EXPECT_EQ(PeerId{1}, pool.at(3).view().leader());
  pool.kill(1);
  const Round then = pool.round_of(2);
  ASSERT_TRUE(pool.reaches(2, then + 1));
  EXPECT_EQ(PeerId{2}, pool.at(3).view().leader());
  const world::Event* lead = nullptr;
  for (const world::Event& event : pool.peer(2).events) {
    if (event.phase() == world::Phase::lead && lead == nullptr) lead = &event;
  }
  ASSERT_NE(nullptr, lead);
  EXPECT_EQ(then + 1, lead->round);
  EXPECT_EQ(1U, lead->as<event::Lead>()->ballot);
  ASSERT_TRUE(pool.reaches(4, then + 3));
  EXPECT_EQ(processes(pool, {2, 3, 4}), pool.at(4).head()->members);
  EXPECT_TRUE(one_history(pool, {2, 3, 4}));
  for (const Record& record : pool.peer(2).applied) EXPECT_TRUE(covers_the_batch(record, 16));
}

TEST(Swarm, process_that_returns_under_an_old_id_is_another_member) {
  Pool pool;
  pool.start_all(4);
  ASSERT_TRUE(pool.reaches(2, 3));
  const wire::Member former = pool.process(3);
  pool.kill(3);
  pool.run_for(20ms);
  pool.start(3);
  EXPECT_FALSE(names(pool.at(2).head()->members, pool.process(3)));
  ASSERT_TRUE(pool.comes([&] { return pool.at(3).peer_state() == wire::PeerState::member; }));
  const std::vector<wire::Member>& members = pool.at(3).head()->members;
  EXPECT_EQ(processes(pool, {1, 2, 4, 3}), members) << "the youngest, and the former is gone";
  EXPECT_FALSE(names(members, former));
  ASSERT_TRUE(pool.reaches(3, pool.round_of(3) + 2));
  EXPECT_TRUE(contributes(pool.peer(3).applied.back(), 3));
  EXPECT_TRUE(one_history(pool, {1, 2, 3, 4}));
}

TEST(Swarm, members_that_returned_are_no_majority) {
  Pool pool({.patience = 20s});
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 3));
  for (const std::uint64_t id : {2, 3}) pool.kill(id);
  pool.run_for(20ms);
  for (const std::uint64_t id : {2, 3}) pool.start(id);
  pool.run_for(500ms);
  const Round then = pool.round_of(1);
  pool.run_for(8s);
  EXPECT_EQ(then, pool.round_of(1)) << "two of its three members are gone, with all that they promised";
  EXPECT_EQ(Wait::Kind::majority, pool.at(1).waiting().kind);
  ASSERT_TRUE(pool.comes([&] { return pool.at(3).peer_state() == wire::PeerState::member; }));
  const std::vector<Record>& history = pool.peer(1).applied;
  EXPECT_TRUE(std::any_of(history.begin(), history.end(), [](const Record& r) { return r.minority; }));
}

TEST(Swarm, finishes_the_round_of_a_leader_that_died_when_some_had_the_mean) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(3, 2));
  pool.drop = [](auto, std::uint64_t to, const wire::Message& m) {
    return to == 1 && std::holds_alternative<wire::Vote>(m);
  };
  std::optional<wire::Plan> called;
  ASSERT_TRUE(pool.comes([&] {
    if (pool.peer(3).plan) called = pool.peer(3).plan;
    return called && !pool.peer(2).plan && !pool.peer(3).plan &&
           pool.at(2).waiting().kind == Wait::Kind::commit;
  }));
  pool.run_for(100ms);
  pool.kill(1);
  ASSERT_TRUE(pool.reaches(3, called->draft.round));
  EXPECT_EQ(called->draft.contributors, pool.peer(3).applied.at(called->draft.round - 1).contributors);
  EXPECT_TRUE(one_history(pool, {2, 3}));
}

TEST(Swarm, leaver_goes_after_its_round_and_nobody_calls_it_lost) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 3));
  pool.run_for(20ms);
  pool.at(3).leave(pool.now());
  ASSERT_TRUE(pool.comes([&] { return !pool.peer(3).ends.empty(); }, 5s));
  const Record last = *pool.at(3).head();
  EXPECT_EQ("left after round " + std::to_string(last.round), pool.peer(3).ends.at(0));
  EXPECT_EQ(processes(pool, {1, 2}), last.members);
  EXPECT_TRUE(contributes(last, 3)) << "what it had done counts";
  pool.kill(3);
  ASSERT_TRUE(pool.reaches(1, last.round + 2));
  EXPECT_FALSE(has_event(pool.peer(1), world::Phase::lost, 3));
  EXPECT_TRUE(has_event(pool.peer(1), world::Phase::leave, 3));
}

TEST(Swarm, leader_can_leave_too) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 3));
  pool.at(1).leave(pool.now());
  ASSERT_TRUE(pool.comes([&] { return !pool.peer(1).ends.empty(); }, 5s));
  const Round then = pool.round_of(1);
  pool.kill(1);
  ASSERT_TRUE(pool.reaches(3, then + 2));
  EXPECT_EQ(processes(pool, {2, 3}), pool.at(3).head()->members);
}

TEST(Swarm, all_can_leave) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 3));
  for (const std::uint64_t id : {1, 2, 3}) pool.at(id).leave(pool.now());
  for (const std::uint64_t id : {1, 2, 3})
    EXPECT_TRUE(pool.comes([&] { return !pool.peer(id).ends.empty(); }, 5s)) << id;
}

TEST(Swarm, tells_a_laggard_the_commit_that_it_missed) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(3, 2));
  int lost = 0;
  pool.drop = [&](auto, std::uint64_t to, const wire::Message& m) {
    const auto* commit = std::get_if<wire::Commit>(&m);
    return to == 3 && commit != nullptr && commit->record.round == 3 && lost++ == 0;
  };
  ASSERT_TRUE(pool.reaches(3, 5));
  EXPECT_GT(lost, 1);
  EXPECT_TRUE(pool.peer(3).catch_ups.empty()) << "it had the mean";
  EXPECT_EQ(5U, pool.peer(3).applied.back().round);
}

TEST(Swarm, peer_that_was_left_out_takes_the_state_and_returns) {
  Pool pool;
  pool.start_all(4);
  ASSERT_TRUE(pool.reaches(4, 2));
  pool.sever(3, 4);
  ASSERT_TRUE(pool.comes([&] { return !pool.peer(4).catch_ups.empty() || !pool.peer(3).catch_ups.empty(); }));
  EXPECT_TRUE(pool.peer(3).catch_ups.empty()) << "the younger one goes";
  pool.heal();
  ASSERT_TRUE(pool.comes([&] { return pool.at(4).peer_state() == wire::PeerState::member; }));
  ASSERT_TRUE(pool.reaches(4, pool.round_of(4) + 2));
  EXPECT_TRUE(one_history(pool, {1, 2, 3, 4}));
}

TEST(Swarm, leader_that_was_stopped_finds_itself_replaced_and_returns) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(3, 2));
  pool.peer(1).stopped = true;
  const Round then = pool.round_of(2);
  ASSERT_TRUE(pool.reaches(2, then + 3));
  EXPECT_TRUE(has_event(pool.peer(2), world::Phase::lost, 1));
  EXPECT_FALSE(has_event(pool.peer(2), world::Phase::lost, 3));
  pool.peer(1).stopped = false;
  ASSERT_TRUE(pool.comes([&] { return is_member(pool.at(2).head()->members, PeerId{1}); }));
  EXPECT_EQ(PeerId{2}, pool.at(1).view().leader());
  EXPECT_EQ(processes(pool, {2, 3, 1}), pool.at(2).head()->members) << "it is the youngest now";
  EXPECT_TRUE(one_history(pool, {1, 2, 3}));
}

TEST(Swarm, replaces_a_leader_that_stops_within_less_time_when_the_round_is_overdue) {
  for (const bool overdue : {false, true}) {
    Pool pool;
    pool.start_all(3);
    ASSERT_TRUE(pool.reaches(1, 3));
    if (overdue) {
      pool.mean_stays_away = [](auto) { return true; };
      pool.run_for(4s);
    }
    pool.peer(1).stopped = true;
    pool.run_for(1500ms);
    EXPECT_EQ(pool.at(2).leading().leads(), overdue);
  }
}

TEST(Swarm, leaves_nobody_out_that_computes_for_long_on_what_it_was_leased) {
  Pool pool({.wait_for = 3, .lease = {1600, 4}});
  pool.start_all(3);
  for (const std::uint64_t id : {1, 2, 3}) pool.peer(id).microbatch_takes = 400ms;
  ASSERT_TRUE(pool.comes([&] { return pool.round_of(1) >= 3; }, 300s));
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_FALSE(has_event(pool.peer(1), world::Phase::lost, id));
}

TEST(Swarm, always_says_for_what_it_waits) {
  Pool pool({.patience = 600s});
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 2));
  for (const std::uint64_t other : {2, 3}) pool.sever(1, other);
  pool.sever(2, 3);
  pool.run_for(3s);
  pool.heal();
  EXPECT_FALSE(pool.comes([&] { return pool.at(1).waiting().kind == Wait::Kind::nothing; }, 20s));
  EXPECT_GT(pool.round_of(1), 4U);
}

TEST(Swarm, does_not_count_the_time_in_which_all_stood_still_as_that_of_a_round) {
  Pool pool;
  pool.start_all(4);
  ASSERT_TRUE(pool.reaches(1, 3));
  ASSERT_TRUE(pool.comes([&] { return pool.peer(4).plan.has_value(); }));
  for (const std::uint64_t id : {1, 2, 3, 4}) pool.peer(id).stopped = true;
  pool.run_for(100s);
  for (const std::uint64_t id : {1, 2, 3, 4}) pool.peer(id).stopped = false;
  ASSERT_TRUE(pool.reaches(1, pool.round_of(1) + 1));
  pool.mean_stays_away = [](std::uint64_t id) { return id == 4; };
  EXPECT_TRUE(pool.comes([&, then = pool.round_of(1)] { return pool.round_of(1) > then + 1; }, 20s));
}

TEST(Swarm, the_smaller_side_of_a_split_waits_then_goes_on_marked_then_gives_way) {
  Pool pool;
  pool.start_all(5);
  ASSERT_TRUE(pool.reaches(5, 3));
  for (const std::uint64_t a : {1, 2}) {
    for (const std::uint64_t b : {3, 4, 5}) pool.sever(a, b);
  }
  pool.run_for(100ms);
  const Round then = pool.round_of(1);
  pool.run_for(4s);
  EXPECT_EQ(then, pool.round_of(1));
  EXPECT_GT(pool.round_of(3), then + 3);
  EXPECT_FALSE(pool.at(3).head()->minority);
  EXPECT_EQ(Wait::Kind::majority, pool.at(1).waiting().kind);
  ASSERT_TRUE(pool.reaches(1, then + 1));
  EXPECT_TRUE(pool.peer(1).applied.back().minority);
  pool.heal();
  ASSERT_TRUE(pool.comes([&] { return pool.at(3).head()->members.size() == 5; }));
  EXPECT_FALSE(pool.peer(1).catch_ups.empty());
  EXPECT_TRUE(pool.peer(3).catch_ups.empty()) << "more samples win";
  EXPECT_TRUE(one_history(pool, {3, 4, 5}));
  pool.run_for(1s);
  EXPECT_EQ(pool.at(3).head()->members, pool.at(1).head()->members);
}

// The first may live on out of reach, and is a majority by itself.
TEST(Swarm, the_second_of_two_waits_for_the_first_whoever_joins_and_all_say_for_whom) {
  Pool pool({.patience = 20s});
  pool.start_all(2);
  ASSERT_TRUE(pool.reaches(2, 2));
  const auto alone = [&](std::uint64_t id) {
    const Wait wait = pool.at(id).waiting();
    return wait.peers == std::vector{PeerId{1}} && wait.kind == Wait::Kind::majority;
  };
  pool.start(3);
  ASSERT_TRUE(pool.comes([&] { return pool.at(3).peer_state() == wire::PeerState::ready; }));
  pool.kill(1);
  pool.run_for(8s);
  const Round before = pool.round_of(2);
  EXPECT_TRUE(alone(2)) << text_of(pool.at(2).waiting());
  ASSERT_EQ(wire::PeerState::ready, pool.at(3).peer_state());
  EXPECT_TRUE(alone(3)) << text_of(pool.at(3).waiting());
  ASSERT_TRUE(pool.reaches(2, before + 2));
  EXPECT_FALSE(pool.peer(2).applied.back().awaited.empty()) << "of one of two this is no majority's history";
}

TEST(Swarm, a_run_ends_once_everybody_has_its_last_record) {
  Pool pool({.rounds = 4});
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 4));
  pool.run_for(1s);
  for (const std::uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(4U, pool.round_of(id));
    EXPECT_TRUE(pool.at(id).head()->last);
    EXPECT_TRUE(pool.at(id).view().not_at_the_end().empty());
    EXPECT_FALSE(pool.at(id).leading().leads());
  }
}

TEST(Swarm, each_member_can_end_the_run) {
  for (const std::uint64_t id : {1, 3}) {
    Pool pool;
    pool.start_all(3);
    ASSERT_TRUE(pool.reaches(1, 2));
    pool.at(id).announcing().end_run(pool.now());
    ASSERT_TRUE(pool.comes([&] { return pool.at(2).head()->last; }, 5s)) << id;
    EXPECT_LE(pool.round_of(2), 4U);
    EXPECT_EQ(PeerId{id}, pool.at(2).view().run_end->by);
  }
}

TEST(Swarm, the_wish_to_end_a_run_outlives_the_peer_that_had_it) {
  Pool pool;
  pool.start_all(3);
  ASSERT_TRUE(pool.reaches(1, 2));
  const std::uint64_t leads = pool.at(2).view().leader()->value;
  const std::uint64_t wants = leads == 3 ? 2 : 3;
  const std::uint64_t stays = 6 - leads - wants;
  const auto hears = [&] { return pool.at(stays).view().run_end.has_value(); };
  pool.at(wants).announcing().end_run(pool.now());
  ASSERT_TRUE(pool.comes(hears, 5s));
  pool.kill(leads);
  pool.kill(wants);
  ASSERT_TRUE(pool.comes([&] { return pool.at(stays).head()->last; }, 60s));
}

TEST(Swarm, a_lone_peer_trains_alone) {
  Pool pool({.rounds = 5});
  pool.start_all(1);
  ASSERT_TRUE(pool.reaches(1, 5));
  for (const Record& record : pool.peer(1).applied) {
    EXPECT_TRUE(covers_the_batch(record, 16));
    EXPECT_FALSE(record.minority);
  }
}

TEST(Swarm, keeps_one_history_while_peers_come_and_die_at_random) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Prng prng(seed);
    Pool pool;
    pool.start_all(5);
    ASSERT_TRUE(pool.reaches(5, 1)) << "seed " << seed;
    std::vector<std::uint64_t> alive = {1, 2, 3, 4, 5};
    std::uint64_t next = 6;
    for (int i = 0; i < 6; ++i) {
      pool.run_for(std::chrono::milliseconds(prng.below(2000)));
      const std::size_t victim = prng.below(alive.size());
      pool.kill(alive[victim]);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(victim));
      ASSERT_TRUE(pool.reaches(alive[0], pool.round_of(alive[0]) + 1)) << "seed " << seed << ", loss " << i;
      if (pool.peer(1).alive) {
        pool.start(next);
        alive.push_back(next++);
        ASSERT_TRUE(pool.comes([&] { return pool.at(next - 1).peer_state() == wire::PeerState::member; }))
            << "seed " << seed << ", join " << i;
      } else if (alive.size() < 3) {
        break;
      }
    }
    std::vector<std::uint64_t> all(next - 1);
    for (std::uint64_t id = 1; id < next; ++id) all[id - 1] = id;
    EXPECT_TRUE(one_history(pool, all)) << "seed " << seed;
    const Record* before = nullptr;
    for (const Record& record : pool.peer(alive[0]).applied) {
      EXPECT_TRUE(before == nullptr || fault_of(record, *before, {64, 4}).empty()) << "seed " << seed;
      before = &record;
      EXPECT_FALSE(record.minority) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tw::swarm
