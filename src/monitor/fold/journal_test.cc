// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "monitor/report/report_text.h"
#include "monitor/report/test_story.h"

namespace tw::monitor {
namespace {

using world::Phase;

constexpr double kEpoch = static_cast<double>(kEpochNanos) * 1e-9;

const BoardPeer& peer_of(const Board& board, std::uint64_t id) {
  return *std::ranges::find(board.peers, PeerId{id}, &BoardPeer::peer);
}

Board board_of(const Story& story, double now = 0) { return journal_of(story.logs()).board(kEpoch + now); }

TEST(Journal, of_nothing_knows_nothing) {
  const Board board = Journal().board();
  EXPECT_EQ(board, Board{});
}

TEST(Journal, knows_the_budget_of_the_newest_start) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.budget_usd = 10}});
  EXPECT_EQ(board_of(story).money.budget_usd, 10);
  story.add(2, 1, {.fact = event::Start{.budget_usd = 20}});
  EXPECT_EQ(board_of(story).money.budget_usd, 20) << "it was raised";
}

TEST(Journal, ends_with_the_round_that_the_newest_state_shows) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.last_round = 9}});
  EXPECT_EQ(board_of(story).last_round, 9U);
  story.add(1, 1, {.round = 2, .fact = event::Restore{.digest = "00ff", .last_round = 5}});
  EXPECT_EQ(board_of(story).last_round, 5U) << "its program had begun to count elsewhere";
  story.add(1, 2, {.round = 3, .fact = event::Restore{.digest = "00ff"}});
  EXPECT_EQ(board_of(story).last_round, 5U);
}

TEST(Journal, of_a_bandwidth_that_is_null_knows_the_one_before) {
  Story story;
  story.add(1, 0, {.fact = event::Start{}});
  story.add(1, 1, {.fact = event::Traffic{.bandwidth = {.up_mbit_s = 80}}});
  story.add(1, 2, {.fact = event::Traffic{.bandwidth = {.up_mbit_s = std::nan("")}}});
  EXPECT_EQ(peer_of(board_of(story), 1).up_mbit_s, 80);
}

TEST(Journal, of_a_run_that_ended_early_says_why_and_is_not_complete) {
  const auto board_with = [](double budget_usd, bool drains) {
    Story story;
    story.add(1, 0,
              {.fact = event::Start{
                   .last_round = 9, .usd_per_h = 3600, .budget_usd = budget_usd, .budget_drains = drains}});
    story.rounds(1, 4, {1});
    story.add(1, 5.1, {.round = 5, .fact = event::Commit{.samples = 32, .last = true}});
    return board_of(story);
  };
  const Board spent = board_with(5, true);
  EXPECT_FALSE(spent.complete);
  EXPECT_TRUE(spent.is_over());
  EXPECT_EQ(spent.ended, "its budget is spent");
  EXPECT_EQ(spent.money.left_s, 0);
  for (const Board& ended : {board_with(50, true), board_with(5, false)}) {
    EXPECT_EQ(ended.ended, "a program ended it");
    EXPECT_TRUE(ended.is_over() && !ended.complete);
  }
}

TEST(Journal, of_a_run_that_nobody_goes_on_with_says_since_when_it_is_dead) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.last_round = 99, .usd_per_h = 1}});
  story.rounds(1, 9, {1, 2});
  const Board lives = board_of(story, 40);
  EXPECT_FALSE(lives.dead_since_s);
  EXPECT_TRUE(lives.money.left_s);
  const Board silent = board_of(story, 100);
  ASSERT_TRUE(silent.dead_since_s);
  EXPECT_NEAR(*silent.dead_since_s, kEpoch + 10, 0.1) << "its last line";
  EXPECT_FALSE(silent.money.left_s) << "nothing is left of a run that is dead";
  EXPECT_FALSE(silent.money.forecast);
  story.add(1, 12, {.round = 10, .fact = event::Stop{}});
  story.add(2, 13, {.round = 10, .fact = event::Stop{}});
  EXPECT_NEAR(board_of(story, 14).dead_since_s.value_or(0), kEpoch + 13, 0.1) << "all have left";
}

world::Event wait_of(double seconds) {
  return {.why = "downloads its state", .fact = event::Wait{.seconds = seconds}};
}

TEST(Journal, is_patient_before_the_usual_round_is_known) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.last_round = 99}});
  story.add(1, 5, wait_of(4));
  EXPECT_FALSE(board_of(story, 70).dead_since_s);
  EXPECT_FALSE(board_of(story, 600).dead_since_s);
  EXPECT_NEAR(board_of(story, 606).dead_since_s.value_or(0), kEpoch + 5, 0.1);
}

TEST(Journal, is_patient_with_a_wait_as_its_next_line_comes_late) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.last_round = 99}});
  story.rounds(1, 9, {1, 2});
  story.add(1, 100, wait_of(90));
  EXPECT_FALSE(board_of(story, 300).dead_since_s);
  EXPECT_TRUE(board_of(story, 701).dead_since_s);
  story.add(1, 2000, wait_of(1990));
  EXPECT_FALSE(board_of(story, 3000).dead_since_s) << "after half of what it lasted it is told again";
  story.add(1, 2000.5, {.round = 10, .fact = event::Accumulate{}});
  EXPECT_TRUE(board_of(story, 3000).dead_since_s) << "the wait is over";
}

TEST(Journal, of_a_run_without_a_last_round_that_all_left_is_over) {
  Story story;
  story.rounds(1, 4, {1, 2});
  story.add(1, 6, {.round = 4, .fact = event::Stop{}});
  EXPECT_FALSE(board_of(story, 7).is_over()) << "peer 2 goes on";
  Story lost = story;
  lost.add(1, 5.5, {.round = 5, .peer = PeerId{2}, .fact = event::Lost{}});
  EXPECT_FALSE(board_of(lost, 7).is_over());
  EXPECT_TRUE(board_of(lost, 7).dead_since_s) << "nobody knows whether peer 2 would have gone on";
  story.add(2, 6, {.round = 4, .fact = event::Stop{}});
  EXPECT_EQ(board_of(story, 7).ended, "all peers have left");
  EXPECT_FALSE(board_of(story, 500).dead_since_s);
}

TEST(Journal, of_a_run_that_is_over_is_not_dead) {
  Story story;
  story.rounds(1, 4, {1});
  story.add(1, 5.1, {.round = 5, .fact = event::Commit{.samples = 32, .last = true}});
  story.add(1, 6, {.round = 5, .fact = event::Stop{}});
  EXPECT_FALSE(board_of(story, 500).dead_since_s);
}

/// A peer decides rounds of a second each, with 32 samples, as one of so many members.
void decide(Story& story, Round first, Round last, std::uint64_t members) {
  for (Round round = first; round <= last; ++round) {
    const auto t = static_cast<double>(round);
    const bool is_first_alone = members == 1 && round == first;
    story.add(1, t, {.round = round, .fact = event::Accumulate{}});
    story.add(1, t + 0.9,
              {.round = round,
               .fact = event::Commit{.cause = is_first_alone ? event::Cause::minority : event::Cause::none,
                                     .samples = 32,
                                     .samples_total = 32 * round,
                                     .members = members}});
  }
}

void take_state(Story& story, double t, Round round) {
  story.add(1, t, {.round = round, .fact = event::Restore{}});
  story.add(1, t + 0.1, {.round = round, .fact = event::Restore{.digest = "state"}});
}

TEST(Journal, drops_what_a_lone_peer_did_once_it_takes_the_state_of_others) {
  Story story;
  decide(story, 1, 3, 2);
  decide(story, 4, 1500, 1);
  const BoardPeer alone = board_of(story).peers.at(0);
  EXPECT_EQ(alone.state, PeerState::applying);
  EXPECT_EQ(alone.ended, "alone since round 4");
  EXPECT_EQ(alone.samples, 1500U * 32);
  take_state(story, 1502, 1600);
  EXPECT_EQ(board_of(story).peers.at(0).samples, 3U * 32);
  decide(story, 1601, 1602, 2);
  const Board back = board_of(story);
  EXPECT_EQ(back.peers.at(0).rounds, 5U);
  EXPECT_EQ(back.peers.at(0).ended, "");
  ASSERT_EQ(back.interruptions.size(), 1U);
  EXPECT_EQ(back.interruptions[0].round, 1601U);
  EXPECT_EQ(back.interruptions[0].detail, "is back, gave up its rounds 4 to 1500");
}

TEST(Journal, keeps_what_a_lone_peer_did_where_others_come_to_it) {
  Story story;
  decide(story, 1, 3, 2);
  decide(story, 4, 6, 1);
  decide(story, 7, 8, 2);
  EXPECT_EQ(board_of(story).peers.at(0).ended, "");
  take_state(story, 9, 9);
  EXPECT_EQ(board_of(story).peers.at(0).samples, 8U * 32);
  EXPECT_TRUE(board_of(story).interruptions.empty());
}

/// A process makes rounds of a second each, alone, from a start one second before them.
void add_history(Story& story, std::uint64_t peer, const std::string& name, double begin, Round rounds) {
  story.add(peer, begin - 1, {.fact = event::Start{.last_round = 9}});
  for (Round number = 1; number <= rounds; ++number) {
    const double t = begin + static_cast<double>(number) - 1;
    story.add(peer, t, {.round = number, .fact = event::Accumulate{}});
    story.add(peer, t + 1,
              {.round = number,
               .fact = event::Commit{.digest = fmt::format("{}-{}", name, number),
                                     .samples = 32,
                                     .samples_total = 32 * number,
                                     .last = number == 9}});
  }
}

TEST(Journal, forgets_the_history_before_that_of_a_run_which_begins_again) {
  for (const std::uint64_t other : {1, 2}) {
    Story story;
    add_history(story, 1, "first", 1, 9);
    story.add(1, 10.5, {.round = 9, .fact = event::Stop{}});
    EXPECT_TRUE(board_of(story, 11).complete);
    add_history(story, other, "second", 20, 3);
    const Board board = board_of(story, 24);
    EXPECT_FALSE(board.is_over());
    EXPECT_EQ(board.round, 3U);
    EXPECT_EQ(board.samples, 96U);
    EXPECT_EQ(board.rounds.size(), 3U);
    EXPECT_NEAR(board.speed.samples_per_s, 32, 0.01);
    const BoardPeer& peer = peer_of(board, other);
    EXPECT_EQ(std::tuple(peer.round, peer.rounds, peer.samples), std::tuple(3U, 3U, 96U)) << other;
    EXPECT_EQ(peer.state, PeerState::applying);
    if (other != 1) {
      EXPECT_EQ(peer_of(board, 1).state, PeerState::left);
      EXPECT_EQ(peer_of(board, 1).samples, 0U);
    }
    EXPECT_EQ(board.interruptions.back().detail, "begins again, 11.0 s after round 9 was done");
  }
}

TEST(Journal, begins_again_by_any_that_tells_of_it_and_counts_those_as_lost_that_were_silent) {
  for (const bool is_told_before : {false, true}) {
    Story story;
    add_history(story, 1, "first", 1, 9);
    if (is_told_before) add_history(story, 3, "second", 8.5, 3);  // its clock is behind
    add_history(story, 2, "second", 20, 3);
    const Board board = board_of(story, 24);
    EXPECT_EQ(board.round, 3U);
    EXPECT_EQ(board.interruptions.back().kind, Interruption::Kind::resumed);
    EXPECT_EQ(peer_of(board, 1).state, PeerState::lost);
    EXPECT_EQ(peer_of(board, 2).state, PeerState::applying);
  }
}

TEST(Journal, keeps_the_history_whose_first_round_a_peer_with_another_clock_tells_once_more) {
  Story story;
  add_history(story, 1, "first", 1, 9);
  add_history(story, 2, "first", 6.2, 5);
  const Board board = board_of(story, 12);
  EXPECT_EQ(board.round, 9U);
  EXPECT_TRUE(board.interruptions.empty());
}

TEST(Journal, keeps_the_lanes_of_as_many_rounds_as_it_is_asked_for) {
  Story story;
  story.rounds(1, 40, {1, 2});
  const auto first_round = [&](JournalOptions options) {
    return journal_of(story.logs(), std::move(options)).board().spans.front().round;
  };
  EXPECT_EQ(first_round({}), 30U);
  EXPECT_EQ(first_round({.lane_rounds = Board::kMostRounds}), 1U);
}

TEST(Journal, tells_rounds_peers_and_speed) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.digest = "the-run", .last_round = 9}});
  story.rounds(1, 4, {1, 2});
  const Board board = board_of(story);
  EXPECT_EQ(board.run, "the-run");
  EXPECT_EQ(board.last_round, 9U);
  EXPECT_EQ(board.round, 4U);
  EXPECT_EQ(board.samples, 256U);
  EXPECT_EQ(board.identical, true);
  ASSERT_EQ(board.rounds.size(), 4U);
  const BoardRound& last = board.rounds.back();
  EXPECT_EQ(last.samples, 64U);
  EXPECT_EQ(last.contributors, (std::vector{PeerId{1}, PeerId{2}}));
  EXPECT_NEAR(last.begun_s, kEpoch + 4, 1e-5);
  EXPECT_NEAR(last.called_s.value_or(0), kEpoch + 4.8, 1e-5);
  EXPECT_NEAR(last.committed_s.value_or(0), kEpoch + 5, 1e-5);
  EXPECT_NEAR(last.calc_s.value_or(0), 0.8, 1e-9);
  EXPECT_NEAR(last.comm_s.value_or(0), 0.2, 1e-9);
  EXPECT_NEAR(board.speed.granularity.value_or(0), 4, 1e-9);
  EXPECT_NEAR(board.speed.samples_per_s, 64, 1e-4);
  EXPECT_NEAR(peer_of(board, 2).samples_per_s, 32, 1e-4);
  EXPECT_EQ(peer_of(board, 1).state, PeerState::applying);
  EXPECT_EQ(peer_of(board, 1).round, 4U);
}

TEST(Journal, counts_a_sample_that_the_run_goes_on_without_once) {
  Story story;
  story.rounds(1, 2, {1, 2});
  const auto skip = [&](std::uint64_t writer, double t, double sample) {
    story.add(writer, t, {.round = 1, .why = "a", .fact = event::Skip{.sample = sample}});
  };
  skip(1, 2, 7);
  skip(2, 2.1, 8);
  skip(2, 2.5, 7);  // its peer handed it over and committed all the same
  story.add(1, 2.6, {.round = 1, .why = "without a number", .fact = event::Skip{}});
  const Board board = board_of(story);
  EXPECT_EQ(board.samples, 128U);
  EXPECT_EQ(board.ledger.skipped, 2U);
  EXPECT_EQ(board.ledger.committed, 126U);
  EXPECT_NE(render(story.summary()).find("skipped        2 samples that could not be had\n"),
            std::string::npos)
      << render(story.summary());
}

TEST(Journal, counts_a_log_that_is_there_twice_once) {
  Story story;
  for (Round round = 1; round <= 3; ++round)
    for (const std::uint64_t peer : {1, 2})
      story.add(peer, static_cast<double>(round),
                {.round = round,
                 .fact = event::Commit{
                     .samples = 32, .samples_total = 64 * round, .loss = 0.1 * static_cast<double>(peer)}});
  auto logs = story.logs();
  const Board once = journal_of(logs).board();
  EXPECT_NEAR(once.loss.value_or(0), 0.15, 1e-9);
  logs.push_back(logs.front());
  EXPECT_EQ(journal_of(logs).board(), once);
}

TEST(Journal, keeps_the_loss_of_a_peer_that_died_before_the_others_committed_its_round) {
  const auto loss_of_round_2 = [](const std::string& record_of_others) {
    Story story;
    story.rounds(1, 1, {1, 2});
    const auto commits = [&](std::uint64_t writer, double t, const std::string& record,
                             std::uint64_t samples) {
      event::Commit commit{.digest = record, .samples = samples, .samples_total = 128};
      if (samples > 0) commit.loss = 0.5;
      story.add(writer, t, {.round = 2, .fact = std::move(commit)});
    };
    commits(1, 2, "aa", 64);
    story.add(1, 3, {.fact = event::Start{}});
    story.add(1, 3.1, {.round = 1, .fact = event::Restore{.digest = "state"}});
    commits(2, 3.2, record_of_others, 0);
    return board_of(story).rounds.back().loss;
  };
  EXPECT_EQ(loss_of_round_2("aa"), 0.5);
  EXPECT_EQ(loss_of_round_2("bb"), std::nullopt) << "of a history that was given up";
}

TEST(Journal, tells_how_near_averaging_came_to_its_bound) {
  Story story;
  story.add(1, 1, {.round = 1, .fact = event::Lead{}});
  story.add(1, 2, {.round = 1, .fact = event::Call{.calc_s = 1, .bound_s = 0.9}});
  const auto commits = [&](std::uint64_t writer, double t, double calc_s, double comm_s) {
    story.add(writer, t,
              {.round = 1, .fact = event::Commit{.samples = 32, .calc_s = calc_s, .comm_s = comm_s}});
  };
  commits(1, 3, 0.5, 1.5);
  commits(2, 3.1, 1, 1);
  EXPECT_NEAR(board_of(story).rounds.at(0).bound_share.value_or(0), 0.9, 1e-9)
      << "by the time of the peer that was ready last";
}

/// A peer's part in a round of a second. Its call comes at once, as it has one microbatch, of work_s; all
/// have the others' sums after `ready_s`.
void part_of_second(Story& story, Round round, std::uint64_t peer, double work_s, double ready_s = 0.9) {
  const auto t = static_cast<double>(round);
  story.add(peer, t, {.round = round, .fact = event::Accumulate{}});
  story.add(peer, t + 0.01, {.round = round, .fact = event::Call{.calc_s = 0.01}});
  story.add(peer, t + ready_s, {.round = round, .fact = event::Scatter{.since_call_s = ready_s - 0.01}});
  const double calc_s = std::max(work_s, 0.01);
  event::Commit commit{.samples_total = 64 * round, .calc_s = calc_s, .comm_s = 0.92 - calc_s};
  commit.samples = work_s > 0 ? 32 : 0;
  story.add(peer, t + 0.92, {.round = round, .fact = std::move(commit)});
  story.apply(peer, t + 0.92, round, "digest");
}

double seconds_of(const Board& board, std::uint64_t peer, PeerState state) {
  double sum_s = 0;
  for (const BoardSpan& span : board.spans)
    if (span.peer == PeerId{peer} && span.state == state) sum_s += span.to_s - span.from_s;
  return sum_s;
}

TEST(Journal, counts_a_peer_as_computing_until_its_own_work_is_done_however_early_the_call_is) {
  Story story;
  for (Round round = 1; round <= 8; ++round)
    for (const std::uint64_t peer : {1, 2}) part_of_second(story, round, peer, 0.9);
  const Board board = board_of(story);
  EXPECT_NEAR(seconds_of(board, 1, PeerState::computing), 8 * 0.9, 1e-4);
  EXPECT_NEAR(seconds_of(board, 1, PeerState::averaging), 8 * 0.02, 1e-4);
  EXPECT_NEAR(board.speed.granularity.value_or(0), 45, 1e-6);
  EXPECT_NEAR(board.speed.goodput.value_or(0), 0.91, 0.01) << "0.08 s of each second are idle";
  story.add(1, 9, {.round = 9, .fact = event::Accumulate{}});
  story.add(1, 9.01, {.round = 9, .fact = event::Call{}});
  EXPECT_EQ(peer_of(board_of(story), 1).state, PeerState::computing);
  story.add(1, 9.9, {.round = 9, .fact = event::Scatter{}});
  EXPECT_EQ(peer_of(board_of(story), 1).state, PeerState::averaging);
}

TEST(Journal, takes_the_times_of_a_round_from_the_peer_that_was_ready_last) {
  Story story;
  for (Round round = 1; round <= 8; ++round) {
    part_of_second(story, round, 1, 0.3);
    part_of_second(story, round, 2, 0.9);
  }
  const Board board = board_of(story);
  EXPECT_NEAR(board.speed.granularity.value_or(0), 45, 1e-6) << "a wait for the work of others is none";
  EXPECT_NEAR(board.rounds.back().calc_s.value_or(0), 0.9, 1e-9);
  EXPECT_NEAR(seconds_of(board, 1, PeerState::computing), 8 * 0.3, 1e-4);
  EXPECT_NEAR(board.speed.goodput.value_or(0), 0.61, 0.01) << "that wait is no work";
}

TEST(Journal, takes_no_times_from_the_log_of_a_peer_that_had_no_part_in_a_round) {
  Story story;
  for (Round round = 1; round <= 8; ++round) part_of_second(story, round, 1, round % 2 == 0 ? 0.9 : 0);
  const Board board = board_of(story);
  EXPECT_FALSE(board.rounds.front().calc_s || board.rounds.front().comm_s);
  EXPECT_NEAR(board.speed.granularity.value_or(0), 45, 1e-6);
  Story idle;
  for (Round round = 1; round <= 8; ++round) part_of_second(idle, round, 1, 0);
  EXPECT_FALSE(board_of(idle).speed.granularity);
  EXPECT_EQ(board_of(idle).speed.goodput, 0.0);
}

TEST(Journal, counts_a_peer_as_computing_while_it_works_for_the_next_round) {
  Story story;
  for (Round round = 1; round <= 8; ++round) {
    const auto t = static_cast<double>(round);
    // The update of the round before waited for the microbatch under way.
    if (round > 1)
      story.add(1, t + 0.5, {.round = round - 1, .fact = event::Apply{.digest = "digest", .took_s = 0.1}});
    story.add(1, t + 0.5, {.round = round, .fact = event::Accumulate{}});
    story.add(1, t + 0.51, {.round = round, .fact = event::Call{}});
    story.add(1, t + 0.7, {.round = round, .fact = event::Scatter{}});
    story.add(
        1, t + 1,
        {.round = round,
         .fact = event::Commit{
             .samples = 32, .samples_total = 32 * round, .calc_s = 0.7, .comm_s = 0.4, .hidden_s = 0.3}});
  }
  const Board board = board_of(story);
  EXPECT_NEAR(seconds_of(board, 1, PeerState::averaging), 8 * 0.1, 1e-4) << "what nothing hides";
  EXPECT_NEAR(seconds_of(board, 1, PeerState::applying), 7 * 0.1, 1e-4);
  EXPECT_NEAR(board.speed.goodput.value_or(0), 0.8, 0.01);
}

TEST(Journal, shows_a_wait_for_others_after_the_call_as_averaging) {
  Story story;
  story.add(1, 1, {.round = 1, .fact = event::Accumulate{}});
  story.add(1, 2, {.round = 1, .fact = event::Call{}});
  const auto waits = [&](double t, std::vector<PeerId> peers) {
    story.add(1, t,
              {.round = 1, .why = "waiting", .fact = event::Wait{.peers = std::move(peers), .seconds = 4}});
  };
  waits(8, {});
  EXPECT_EQ(peer_of(board_of(story), 1).state, PeerState::computing) << "it waits for itself";
  waits(14, {PeerId{2}});
  const Board board = board_of(story);
  EXPECT_EQ(peer_of(board, 1).state, PeerState::averaging);
  EXPECT_NEAR(peer_of(board, 1).since_s, kEpoch + 10, 1e-5);
  story.add(1, 15, {.round = 1, .fact = event::Scatter{}});
  EXPECT_TRUE(peer_of(board_of(story), 1).wait) << "for the mean";
  story.add(1, 20, {.round = 1, .fact = event::Commit{.samples = 32, .calc_s = 8, .comm_s = 11}});
  EXPECT_NEAR(seconds_of(board_of(story), 1, PeerState::averaging), 11, 1e-5);
}

TEST(Journal, has_lanes_without_overlap_that_show_who_computes_until_when) {
  Story story;
  story.rounds(1, 30, {1, 2});
  const Board board = board_of(story, 31.5);
  std::map<PeerId, double> until_s;
  double computing_s = 0;
  for (const BoardSpan& span : board.spans) {
    EXPECT_GT(span.round, 30 - Board::kMostLaneRounds);
    EXPECT_GE(span.from_s, until_s[span.peer]);
    EXPECT_GT(span.to_s, span.from_s);
    until_s[span.peer] = span.to_s;
    if (span.state == PeerState::computing && span.peer == PeerId{1}) computing_s += span.to_s - span.from_s;
  }
  EXPECT_NEAR(until_s[PeerId{2}], kEpoch + 31.5, 1e-5);
  EXPECT_NEAR(computing_s, 0.8 * (Board::kMostLaneRounds - 1), 1e-4);
  EXPECT_NEAR(board.speed.goodput.value_or(0), 0.77, 0.03) << "the last half second is idle";
}

TEST(Journal, shows_a_lost_peer_with_the_reason_and_who_waits_for_it) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.add(1, 4, {.round = 4, .fact = event::Accumulate{}});
  story.add(1, 9,
            {.round = 4,
             .peer = PeerId{2},
             .why = "waiting for peer 2: its votes",
             .fact = event::Wait{.seconds = 4}});
  Board board = board_of(story);
  EXPECT_EQ(peer_of(board, 2).state, PeerState::applying);
  ASSERT_TRUE(peer_of(board, 1).wait);
  EXPECT_EQ(peer_of(board, 1).wait->peers, std::vector{PeerId{2}});
  EXPECT_NEAR(peer_of(board, 1).wait->since_s, kEpoch + 5, 1e-5);
  EXPECT_FALSE(peer_of(board_of(story, 16), 1).wait) << "it would have been told once more";

  story.add(1, 10, {.round = 4, .peer = PeerId{2}, .why = "cut off", .fact = event::Lost{.silent_s = 2}});
  story.add(1, 10.5, {.round = 4, .fact = event::Call{}});
  story.add(1, 11, {.round = 4, .fact = event::Commit{.samples = 32, .samples_total = 224}});
  board = board_of(story);
  EXPECT_EQ(peer_of(board, 2).state, PeerState::lost);
  EXPECT_EQ(peer_of(board, 2).ended, "cut off");
  EXPECT_FALSE(peer_of(board, 1).wait);
  EXPECT_EQ(board.rounds.back().left_out, (std::vector<LeftOut>{{PeerId{2}, "cut off"}}));
  ASSERT_EQ(board.interruptions.size(), 1U);
  EXPECT_EQ(board.interruptions[0].kind, Interruption::Kind::lost);
  const bool waited = std::ranges::any_of(board.spans, [](const BoardSpan& span) {
    return span.peer == PeerId{1} && span.why == "waiting for peer 2: its votes";
  });
  EXPECT_TRUE(waited) << "the lane says whom it waited for";
}

TEST(Journal, shows_a_peer_that_others_counted_out_and_took_back_as_it_tells) {
  Story story;
  story.rounds(1, 4, {1, 2});
  story.add(2, 5.1, {.round = 5, .fact = event::Accumulate{}});
  story.add(2, 5.2, {.round = 5, .fact = event::Call{}});
  story.add(1, 5.3, {.round = 5, .peer = PeerId{2}, .why = "cut off", .fact = event::Lost{}});
  story.add(1, 5.4, {.round = 6, .peer = PeerId{2}, .fact = event::Join{}});
  EXPECT_EQ(peer_of(board_of(story), 2).state, PeerState::computing);
  story.add(2, 5.5, {.round = 5, .fact = event::Scatter{}});
  EXPECT_EQ(peer_of(board_of(story), 2).state, PeerState::averaging);
}

TEST(Journal, shows_a_notice_and_that_its_peer_leaves) {
  Story story;
  story.rounds(1, 2, {1, 2});
  story.add(
      2, 3,
      {.round = 2, .fact = event::Notice{.cause = event::Cause::preempt, .source = "aws", .deadline_s = 30}});
  Board board = board_of(story);
  ASSERT_TRUE(peer_of(board, 2).notice);
  EXPECT_NEAR(peer_of(board, 2).notice->deadline_s.value_or(0), kEpoch + 33, 1e-5);
  EXPECT_EQ(peer_of(board, 2).state, PeerState::leaving);
  story.rounds(3, 3, {1, 2});
  EXPECT_EQ(peer_of(board_of(story), 2).state, PeerState::leaving) << "while it works";
  story.add(1, 4.5, {.round = 3, .peer = PeerId{2}, .fact = event::Leave{}});
  story.add(2, 5, {.round = 3, .why = "left the run", .fact = event::Stop{}});
  board = board_of(story);
  EXPECT_EQ(peer_of(board, 2).state, PeerState::left);
  EXPECT_EQ(peer_of(board, 2).ended, "left the run");
}

TEST(Journal, adds_up_what_the_processes_of_a_peer_used) {
  Story story;
  story.add(1, 0, {.fact = event::Start{.site = "aws:us-east-1:a", .hardware = "8 cores"}});
  story.add(1, 3600,
            {.round = 1,
             .fact = event::Commit{.use = {.cpu_s = 5,
                                           .gpu_busy = 0.75,
                                           .gpu_memory = 2e9,
                                           .gpu_memory_total = 8e9,
                                           .bytes_sent = 100}}});
  const auto gpu = BoardGpu{.busy = 0.75, .memory = 2'000'000'000, .memory_total = 8'000'000'000};
  EXPECT_EQ(peer_of(board_of(story), 1).gpu, gpu);
  story.add(1, 7200, {.fact = event::Start{.usd_per_h = 2}});
  story.add(1, 9000, {.round = 1, .fact = event::Stop{.bytes_sent = 10, .bytes_received = 7}});
  const BoardPeer peer = peer_of(board_of(story), 1);
  EXPECT_EQ(peer.site, "aws:us-east-1:a");
  EXPECT_EQ(peer.hardware, "8 cores");
  EXPECT_EQ(peer.usd_per_h, 2.0);
  EXPECT_NEAR(peer.usage.hours, 1.5, 1e-9);
  EXPECT_NEAR(peer.usage.cpu_s, 5, 1e-9);
  EXPECT_EQ(peer.gpu, std::nullopt) << "that of a process before";
  EXPECT_EQ(peer.usage.bytes_sent, 110U);
  EXPECT_EQ(peer.usage.bytes_received, 7U);
}

TEST(Journal, takes_the_price_of_events_before_that_of_the_caller) {
  Story story;
  for (const std::uint64_t peer : {1, 2, 3}) {
    event::Start start{.site = peer == 1 ? "aws:us-east-1:a" : "gcp:us-west1:b"};
    if (peer != 3) start.usd_per_h = 0.5 * static_cast<double>(peer);
    story.add(peer, 0, {.fact = std::move(start)});
  }
  story.rounds(1, 4, {1, 2, 3});
  story.add(1, 3600, {.round = 4, .fact = event::Traffic{.to = {{"gcp:us-west1:b", 8e9}}}});
  story.add(2, 7200, {.round = 4, .fact = event::Stop{}});
  const Money money =
      journal_of(story.logs(), {.usd_per_h = {{PeerId{1}, 77}, {PeerId{3}, 10}}}).board().money;
  ASSERT_TRUE(money.usd());
  EXPECT_NEAR(*money.machines_usd, 0.5 * 1 + 1 * 2 + 10 * 5.001 / 3600, 1e-6)
      << "what events say goes before what the caller knows";
  EXPECT_GT(money.egress_usd.value(), 0.1);
  EXPECT_NEAR(*money.usd(), *money.machines_usd + *money.egress_usd, 1e-12);
}

TEST(Journal, is_bounded) {
  Story story;
  for (Round round = 1; round <= Board::kMostRounds + 100; ++round)
    story.add(1, static_cast<double>(round),
              {.round = round, .fact = event::Commit{.samples = 1, .samples_total = round}});
  for (std::size_t i = 0; i < Board::kMostInterruptions + 100; ++i)
    story.add(1, 1e5 + static_cast<double>(i),
              {.round = 1, .fact = event::Notice{.cause = event::Cause::at_risk, .source = "aws"}});
  const Board board = board_of(story);
  EXPECT_EQ(board.rounds.size(), Board::kMostRounds);
  EXPECT_EQ(board.rounds.back().round, Board::kMostRounds + 100);
  EXPECT_EQ(board.interruptions.size(), Board::kMostInterruptions);
  EXPECT_LE(board.spans.size(), 16 * Board::kMostLaneRounds + 1);
}

TEST(Journal, names_states_and_kinds) {
  EXPECT_EQ(name_of(PeerState::lost), "lost");
  EXPECT_EQ(name_of(PeerState::starting), "starting");
  EXPECT_EQ(name_of(Interruption::Kind::handed_over), "handed_over");
}

}  // namespace
}  // namespace tw::monitor
