// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/liveness_checkers.h"

#include <gtest/gtest.h>

#include "sim/checkers/test_story.h"

namespace tw::sim {
namespace {

TEST(L1, names_what_each_session_waits_for_when_the_run_does_not_end) {
  Judged<GoesOn> j;
  train::SessionView stuck;
  stuck.round = 7;
  stuck.waiting = {swarm::Wait::Kind::votes, {PeerId{3}}};
  const Survivor survivors[] = {finished(kAnn), {kBob, stuck}};
  j.checker.on_end(survivors);
  ASSERT_EQ(j.checker.violations().size(), 1U);
  EXPECT_EQ(j.story.verdict(),
            "peer 12 has not come beyond round 7; waiting for peer 3: the mean to be complete there");
}

TEST(L1, fires_for_members_of_the_last_record_alone_once_the_run_is_over) {
  Judged<GoesOn> j;
  wire::Record last = j.story.next(j.story.genesis(), {1, 1});
  last.last = true;
  j.commit(kAnn, last);
  const Survivor survivors[] = {finished(kAnn), {kBob, {}}, {kEve, {}}};
  j.checker.on_end(survivors);
  ASSERT_EQ(j.checker.violations().size(), 1U);
  EXPECT_NE(j.story.verdict().find("peer 12"), std::string::npos);
}

Rules timed() {
  Rules rules = kRules;
  rules.round_time = std::chrono::seconds(1);
  rules.round_trip = std::chrono::milliseconds(100);
  rules.transfer_time = std::chrono::seconds(4);
  return rules;
}

TEST(L1, fires_when_no_round_commits_in_time_once_faults_are_over) {
  Judged<GoesOn> j(timed());
  const double limit_s = to_seconds(GoesOn::limit(timed()));
  const wire::Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  j.commit(kAnn, zero);
  j.look({kAnn, kBob}, 0, 50);
  j.checker.on_calm(j.at(50));
  j.look({kAnn, kBob}, 50, 50 + limit_s);
  EXPECT_EQ(j.story.verdict(), "");
  j.commit(kAnn, one);
  j.look({kAnn, kBob}, 50 + limit_s, 49 + 2 * limit_s);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kAnn, kBob}, 49 + 2 * limit_s, 51 + 2 * limit_s);
  EXPECT_NE(j.story.verdict().find("no round was committed after round 1"), std::string::npos);
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(L1, asks_for_rounds_of_the_history_that_lives_once_all_who_knew_a_better_one_have_died) {
  for (const bool all_died : {true, false}) {
    SCOPED_TRACE(all_died);
    Judged<GoesOn> j(timed());
    const double limit_s = to_seconds(GoesOn::limit(timed()));
    wire::Record lost = j.story.genesis(), lives = lost;
    lives.parameters = {8, 8};
    for (int i = 0; i < 5; ++i) lost = j.story.next(lost, {1, 1});
    j.commit(kAnn, lost);
    j.checker.on_calm(j.at(0));
    if (all_died) j.ledger.start_over();
    for (int i = 0; i < 4; ++i) {
      j.commit(kAnn, lives);
      j.look({kAnn, kBob}, i * limit_s / 2, (i + 1) * limit_s / 2);
      lives = j.story.next(lives, {1, 1});
    }
    EXPECT_EQ(j.story.verdict().empty(), all_died);
  }
}

TEST(L1, asks_nothing_of_an_id_that_a_twin_shares) {
  Judged<GoesOn> j;
  j.checker.on_strike({FaultKind::twin, {kBob}, {}});
  const Survivor survivors[] = {{kBob, {}}};
  j.checker.on_end(survivors);
  EXPECT_EQ(j.story.verdict(), "");
}

TEST(L1, counts_from_the_time_when_the_last_peer_went) {
  Judged<GoesOn> j(timed());
  const double limit_s = to_seconds(GoesOn::limit(timed()));
  wire::Record zero = j.story.genesis();
  zero.members.push_back({kEve, "e"});
  j.commit(kAnn, zero);
  j.checker.on_calm(j.at(0));
  j.look({kAnn, kBob, kEve}, 0, limit_s - 2);
  j.look({kAnn, kBob}, limit_s - 2, 2 * limit_s - 3);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kAnn, kBob}, 2 * limit_s - 3, 2 * limit_s);
  EXPECT_NE(j.story.verdict(), "");
}

TEST(L1, asks_nothing_while_a_majority_of_the_record_before_is_gone) {
  Judged<GoesOn> j(timed());
  wire::Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  zero.members = {{kBob, "b"}, {kEve, "e"}};
  one.parent = digest_of(zero);
  j.commit(kAnn, zero);
  j.commit(kAnn, one);
  j.checker.on_calm(j.at(0));
  j.look({kAnn}, 0, 100);
  EXPECT_EQ(j.story.verdict(), "") << "half of the newest with its first member, nobody of the one before";
}

TEST(L1, waits_for_the_end_of_a_notice_beyond_the_calm) {
  Judged<GoesOn> j(timed());
  j.commit(kAnn, j.story.genesis());
  j.checker.on_strike({FaultKind::preempt_120s, {kEve}, j.at(0)});
  j.checker.on_calm(j.at(1));
  j.look({kAnn, kBob}, 1, 120);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kAnn, kBob}, 120, 200);
  EXPECT_NE(j.story.verdict(), "");
}

TEST(L1, does_not_count_a_peer_that_is_gone_or_whose_session_is_over) {
  Judged<GoesOn> j(timed());
  j.commit(kAnn, j.story.genesis());
  j.checker.on_calm(j.at(0));
  j.look({kAnn, kBob}, 0, 1);
  j.look({kBob}, 1, 100);
  for (int second = 0; second < 100; ++second) {
    Survivor ann = finished(kAnn);
    ann.now = j.at(100 + second);
    j.checker.on_look(ann);
    j.look({kBob}, 100 + second, 100 + second);
  }
  EXPECT_EQ(j.story.verdict(), "");
}

TEST(L1, asks_nothing_of_a_minority) {
  Judged<GoesOn> j(timed());
  j.commit(kAnn, j.story.genesis());
  j.checker.on_calm(j.at(0));
  j.look({kBob}, 0, 100);
  EXPECT_EQ(j.story.verdict(), "") << "half of the members without the first one";
}

TEST(L2, fires_when_a_joiner_stays_outside_and_says_for_whom_it_waits) {
  Judged<JoinersGetIn> j(timed());
  const double limit_s = to_seconds(JoinersGetIn::limit(timed()));
  j.commit(kAnn, j.story.genesis());
  j.look({kAnn, kBob}, 10, 10);
  j.checker.on_event(kEve, {.at = j.at(10), .fact = event::Start{}});
  j.look({kAnn, kBob, kEve}, 10, 10 + limit_s);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kAnn, kBob, kEve}, 10 + limit_s, 11 + limit_s);
  EXPECT_NE(j.story.verdict().find("peer 13 is no member"), std::string::npos);
}

TEST(L2, is_silent_about_a_joiner_that_became_a_member_or_met_a_fault) {
  Judged<JoinersGetIn> j(timed());
  const double limit_s = to_seconds(JoinersGetIn::limit(timed()));
  const wire::Record zero = j.story.genesis();
  wire::Record one = j.story.next(zero, {1, 1});
  one.members.push_back({kEve, "e"});
  j.commit(kAnn, zero);
  j.checker.on_event(kEve, {.at = j.at(0), .fact = event::Start{}});
  j.checker.on_strike({FaultKind::reset, {kEve, kAnn}, j.at(9)});
  j.look({kAnn, kBob, kEve}, 0, 8 + limit_s);
  j.commit(kAnn, one);
  j.look({kAnn, kBob, kEve}, 8 + limit_s, 30 + limit_s);
  EXPECT_EQ(j.story.verdict(), "");
}

TEST(L2, asks_nothing_of_who_starts_the_run_or_has_failed) {
  Judged<JoinersGetIn> j(timed());
  j.checker.on_event(kEve, {.at = j.at(0), .fact = event::Start{}});
  j.commit(kAnn, j.story.genesis());
  j.look({kAnn, kBob, kEve}, 0, 100);
  EXPECT_EQ(j.story.verdict(), "");
  j.checker.on_event(kEve, {.at = j.at(100), .fact = event::Start{}});
  Survivor failed{kEve};
  failed.view.failure = "nobody is there";
  failed.now = j.at(101);
  j.checker.on_look(failed);
  j.look({kAnn, kBob, kEve}, 101, 200);
  EXPECT_EQ(j.story.verdict(), "");
}

struct WithoutLeader : Judged<LeaderIsReplaced> {
  WithoutLeader() : Judged(timed()) {
    wire::Record zero = story.genesis();
    zero.members.push_back({kEve, "e"});
    commit(kAnn, zero);
    checker.on_event(kAnn, {.at = at(0), .round = 1, .fact = event::Lead{}});
    look({kAnn, kBob, kEve}, 0, 20);
  }

  double limit_s = to_seconds(LeaderIsReplaced::limit(timed()));
};

TEST(L4, fires_when_nobody_takes_the_place_of_a_dead_leader) {
  WithoutLeader j;
  j.checker.on_strike({FaultKind::preempt_0s, {kAnn}, j.at(20)});
  j.look({kBob, kEve}, 20, 20 + j.limit_s);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kBob, kEve}, 20 + j.limit_s, 22 + j.limit_s);
  EXPECT_NE(j.story.verdict().find("peer 11 led round 1 and died"), std::string::npos);
}

TEST(L4, allows_more_time_where_an_id_has_two_processes) {
  WithoutLeader j;
  const double longer_s = to_seconds(GoesOn::limit(timed()));
  j.checker.on_strike({FaultKind::twin, {kEve}, j.at(1)});
  j.checker.on_calm(j.at(2));
  j.checker.on_strike({FaultKind::preempt_0s, {kAnn}, j.at(20)});
  j.look({kBob, kEve}, 20, 20 + longer_s);
  EXPECT_EQ(j.story.verdict(), "");
  j.look({kBob, kEve}, 20 + longer_s, 22 + longer_s);
  EXPECT_NE(j.story.verdict(), "");
}

TEST(L4, is_silent_when_the_round_commits_and_while_another_fault_goes_on) {
  WithoutLeader j;
  j.checker.on_strike({FaultKind::kill, {kAnn}, j.at(20)});
  j.checker.on_strike({FaultKind::partition, {kBob}, j.at(21)});
  j.look({kBob, kEve}, 20, 40 + j.limit_s);
  j.checker.on_calm(j.at(41 + j.limit_s));
  j.look({kBob, kEve}, 40 + j.limit_s, 41 + 2 * j.limit_s);
  j.commit(kBob, j.story.next(*j.ledger.newest(), {1, 1}));
  j.look({kBob, kEve}, 41 + 2 * j.limit_s, 60 + 2 * j.limit_s);
  EXPECT_EQ(j.story.verdict(), "");
}

TEST(L4, does_not_take_the_death_of_somebody_else_for_that_of_the_leader) {
  WithoutLeader j;
  j.checker.on_strike({FaultKind::kill, {kEve}, j.at(20)});
  j.look({kAnn, kBob}, 20, 60);
  EXPECT_EQ(j.story.verdict(), "");
}

TEST(L4, counts_the_death_of_the_last_that_took_the_lead_and_no_other_strike) {
  WithoutLeader j;
  j.checker.on_event(kBob, {.at = j.at(20), .round = 1, .fact = event::Lead{}});
  j.checker.on_strike({FaultKind::kill, {kAnn}, j.at(20)});
  j.checker.on_strike({FaultKind::reset, {kBob, kEve}, j.at(20)});
  j.look({kBob, kEve}, 20, 60);
  EXPECT_EQ(j.story.verdict(), "");
}

TEST(Failure, fires_unless_the_session_came_after_the_end_of_the_run) {
  Judged<NobodyFails> j;
  train::SessionView failed;
  failed.failure = "nobody is there";
  j.checker.on_look({kEve, failed});
  EXPECT_EQ(j.story.verdict(), "peer 13 at round 0: nobody is there");
  wire::Record last = j.story.next(j.story.genesis(), {1, 1});
  last.last = true;
  j.commit(kAnn, last);
  j.checker.on_look({kEve, failed});
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(Failure, is_silent_about_one_of_two_processes_with_one_id_when_the_other_one_is_the_member) {
  Judged<NobodyFails> j;
  wire::Record zero = j.story.genesis();
  zero.members[1].incarnation = 7;
  j.commit(kAnn, zero);
  Survivor loser{kBob, {}};
  loser.view.failure = "peer id 12 is taken";
  j.checker.on_strike({FaultKind::twin, {kBob}});
  j.checker.on_look(loser);
  EXPECT_EQ(j.story.verdict(), "");
  loser.incarnation = 7;
  j.checker.on_look(loser);
  EXPECT_NE(j.story.verdict(), "") << "it is the member";
}

TEST(Failure, is_silent_about_one_of_two_processes_while_the_other_one_is_cut_off) {
  for (const std::uint64_t last_member : {7, 9}) {
    Judged<NobodyFails> j;
    wire::Record zero = j.story.genesis();
    zero.members[1].incarnation = last_member;
    wire::Record one = j.story.next(zero, {1, 1});
    one.members.pop_back();
    j.commit(kAnn, zero);
    j.commit(kAnn, one);
    Survivor loser{kBob, {}};
    loser.view.failure = "peer id 12 is taken";
    loser.incarnation = 9;
    j.checker.on_strike({FaultKind::twin, {kBob}});
    j.checker.on_look(loser);
    EXPECT_EQ(j.story.verdict().empty(), last_member == 7) << "the other one was never a member";
  }
}

/// Idle since the beginning of time.
Survivor idle_for(Duration idle, const train::SessionView& view) {
  return {kAnn, view, idle, Instant{} + idle};
}

TEST(L3, fires_when_a_wait_of_more_than_five_seconds_names_nobody) {
  WaitsAreNamed checker;
  train::SessionView named, silent;
  named.waiting = {swarm::Wait::Kind::votes, {PeerId{3}}};
  checker.on_look({kAnn, named, std::chrono::seconds(60)});
  checker.on_look(idle_for({}, silent));
  checker.on_look(idle_for(std::chrono::seconds(5), silent));
  Survivor at_its_end = finished(kAnn);
  at_its_end.idle = std::chrono::seconds(60);
  checker.on_look(at_its_end);
  EXPECT_TRUE(checker.violations().empty());
  checker.on_look(idle_for(std::chrono::milliseconds(5001), silent));
  checker.on_look(idle_for(std::chrono::milliseconds(5201), silent));
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(L3, fires_at_once_for_a_wait_that_has_no_name) {
  WaitsAreNamed checker;
  train::SessionView works, begins, nobody;
  works.waiting = {.kind = swarm::Wait::Kind::saving};
  begins.waiting = {.kind = swarm::Wait::Kind::company, .done = 1, .total = 2};
  nobody.waiting = {.kind = swarm::Wait::Kind::last_round};
  checker.on_look({kAnn, works, std::chrono::seconds(60)});
  checker.on_look({kAnn, begins, std::chrono::seconds(60)});
  EXPECT_TRUE(checker.violations().empty());
  checker.on_look({kAnn, nobody});
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(L3, fires_for_a_peer_that_waits_for_itself) {
  WaitsAreNamed checker;
  train::SessionView itself;
  itself.waiting = {swarm::Wait::Kind::gradients, {kAnn}};
  checker.on_look(idle_for({}, itself));
  checker.on_look(idle_for(std::chrono::seconds(5), itself));
  EXPECT_TRUE(checker.violations().empty());
  checker.on_look(idle_for(std::chrono::seconds(6), itself));
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(L3, counts_from_when_a_peer_began_to_wait_for_itself) {
  WaitsAreNamed checker;
  train::SessionView others, itself;
  others.waiting = {swarm::Wait::Kind::majority, {kBob}};
  itself.waiting = {swarm::Wait::Kind::gradients, {kAnn}};
  checker.on_look(idle_for(std::chrono::seconds(20), others));
  checker.on_look(idle_for(std::chrono::seconds(21), itself));
  EXPECT_TRUE(checker.violations().empty()) << "it goes on alone from now on";
  checker.on_look(idle_for(std::chrono::seconds(27), itself));
  EXPECT_EQ(checker.violations().size(), 1U);
}

world::Event hung_up(PeerId on, double silent_s) {
  return {{}, 3, on, "it does not answer", event::Lost{.silent_s = silent_s}};
}

TEST(L5, fires_when_a_peer_that_was_stopped_hangs_up_on_another) {
  NobodyIsBlamed checker;
  checker.on_strike({FaultKind::stop, {kAnn}, {}, {}});
  checker.on_event(kAnn, hung_up(kBob, 1.5));
  checker.on_event(kAnn, {{}, 3, kBob, "silent for 2.50 s", event::Lost{}});
  checker.on_event(kBob, hung_up(kAnn, 2.5));
  EXPECT_TRUE(checker.violations().empty());
  checker.on_event(kAnn, hung_up(kBob, 2.5));
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(L5, does_not_judge_once_a_fault_may_have_made_a_peer_silent) {
  NobodyIsBlamed checker;
  checker.on_strike({FaultKind::partition, {kEve}, {}, {}});
  checker.on_event(kAnn, hung_up(kBob, 2.5));
  EXPECT_TRUE(checker.violations().empty());
}

}  // namespace
}  // namespace tw::sim
