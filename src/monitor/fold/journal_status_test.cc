// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/digest.h"
#include "monitor/fold/journal.h"
#include "monitor/report/test_story.h"

namespace tw::monitor {
namespace {

using world::Phase;

constexpr double kEpochS = static_cast<double>(kEpochNanos) * 1e-9;

const BoardPeer& shown(const Board& board, std::uint64_t id) {
  return *std::ranges::find(board.peers, PeerId{id}, &BoardPeer::peer);
}

/// Journals of peers that see their own events and hear each other.
class Company {
 public:
  explicit Company(const Story& story) {
    for (const std::vector<LogEntry>& log : story.logs())
      for (const LogEntry& entry : log) journals_[entry.writer].take(entry);
  }

  Journal& of(std::uint64_t id) { return journals_[PeerId{id}]; }

  void hear(std::uint64_t listener, std::uint64_t speaker, double t) {
    of(listener).take(PeerId{speaker}, of(speaker).status(PeerId{speaker}, kEpochS + t), kEpochS + t);
  }

 private:
  std::map<PeerId, Journal> journals_;
};

Story story_of_two() {
  Story story;
  story.add(1, 0.5, {.fact = event::Start{.site = "aws:us-east-1:a", .hardware = "8 cores", .usd_per_h = 2}});
  story.add(2, 0.5, {.fact = event::Start{.site = "gcp:us-west1:b", .usd_per_h = 1}});
  story.rounds(1, 4, {1, 2});
  for (const std::uint64_t peer : {1, 2})
    story.add(
        peer, 5.5,
        {.round = 4, .fact = event::Traffic{.to = {{"aws:us-east-1:a", 1e9 * static_cast<double>(peer)}}}});
  return story;
}

TEST(JournalStatus, of_another_peer_shows_it_as_its_own_log_does) {
  Story story = story_of_two();
  for (const std::uint64_t peer : {1, 2}) story.apply(peer, 5.1, 5, to_string(Digest{5, 7}));
  story.add(2, 5.2, {.round = 5, .fact = event::Accumulate{}});
  story.add(
      2, 5.6,
      {.round = 5, .fact = event::Notice{.cause = event::Cause::at_risk, .source = "aws", .deadline_s = 30}});
  story.add(2, 9.6,
            {.round = 5,
             .why = "waiting for peer 1: its votes",
             .fact = event::Wait{.peers = {PeerId{1}}, .seconds = 4}});
  const Board logs = journal_of(story.logs()).board(kEpochS + 10);
  Company company(story);
  company.hear(1, 2, 10);
  const Board live = company.of(1).board(kEpochS + 10);

  EXPECT_TRUE(live.own_delays);
  EXPECT_FALSE(logs.own_delays);
  BoardPeer expected = shown(logs, 2);
  BoardPeer told = shown(live, 2);
  EXPECT_NEAR(told.since_s, expected.since_s, 1e-5);
  EXPECT_NEAR(told.usage.hours, expected.usage.hours, 1e-9);
  EXPECT_NEAR(told.notice.value().deadline_s.value(), expected.notice.value().deadline_s.value(), 1e-5);
  EXPECT_NEAR(told.wait.value().since_s, expected.wait.value().since_s, 1e-5);
  told.since_s = expected.since_s;
  told.heard_s = expected.heard_s;
  told.usage.hours = expected.usage.hours;
  told.notice = expected.notice;
  told.wait.value().since_s = expected.wait.value().since_s;
  EXPECT_EQ(told, expected);

  EXPECT_EQ(live.round, logs.round);
  EXPECT_EQ(live.samples, logs.samples);
  EXPECT_EQ(live.identical, true);
  const auto fourth = [](const Board& board) {
    return *std::ranges::find(board.rounds, Round{4}, &BoardRound::round);
  };
  EXPECT_EQ(fourth(live).contributors, fourth(logs).contributors);
  EXPECT_EQ(fourth(live).samples, fourth(logs).samples);
  ASSERT_EQ(live.links.size(), 2U);
  EXPECT_EQ(live.links[1].bytes, logs.links[1].bytes);
  EXPECT_EQ(live.links[1].from, "gcp:us-west1:b");
  EXPECT_NEAR(live.money.usd().value(), logs.money.usd().value(), 1e-6);
}

TEST(JournalStatus, tells_of_all_rounds_since_the_last_word) {
  Story story = story_of_two();
  for (Round round = 5; round <= 12; ++round) {
    const double t = 5 + 0.25 * static_cast<double>(round - 5);
    for (const std::uint64_t peer : {1, 2}) {
      story.add(peer, t, {.round = round, .fact = event::Accumulate{}});
      const double loss = 1 / static_cast<double>(round + peer);
      story.add(peer, t + 0.2, {.round = round, .fact = event::Commit{.samples = 32, .loss = loss}});
    }
  }
  story.add(2, 6, {.round = 9, .peer = PeerId{3}, .why = "silent", .fact = event::Lost{}});
  const Board logs = journal_of(story.logs()).board(kEpochS + 7.5);
  Company company(story);
  company.hear(1, 2, 7.1);
  company.hear(1, 2, 7.2);
  const Board live = company.of(1).board(kEpochS + 7.5);
  for (Round round = 5; round <= 12; ++round) {
    const auto of = [round](const Board& board) {
      return *std::ranges::find(board.rounds, round, &BoardRound::round);
    };
    EXPECT_EQ(of(live).contributors, of(logs).contributors) << round;
    EXPECT_EQ(of(live).left_out, of(logs).left_out) << round;
    EXPECT_NEAR(of(live).loss.value_or(0), of(logs).loss.value_or(1), 1e-9) << round;
  }
}

TEST(JournalStatus, knows_the_loss_of_the_run_by_the_words_of_all_contributors) {
  Story story;
  for (Round round = 1; round <= 3; ++round)
    for (const std::uint64_t peer : {1, 2}) {
      const std::uint64_t own = peer == 1 ? 24 : 8, total = 32 * round;
      const double loss = static_cast<double>(round) + (peer == 1 ? 0.25 : 0.5);
      story.add(
          peer, static_cast<double>(round),
          {.round = round, .fact = event::Commit{.samples = own, .samples_total = total, .loss = loss}});
    }
  Company company(story);
  EXPECT_EQ(company.of(1).loss(), std::nullopt) << "its own part is not the loss of the run";
  company.hear(1, 2, 3.1);
  EXPECT_EQ(company.of(1).loss(), 3.3125);
  company.of(1).take(
      {.writer = PeerId{1},
       .unix_nanos = kEpochNanos + 4'000'000'000,
       .event = {.round = 4, .fact = event::Commit{.samples = 24, .samples_total = 128, .loss = 9}}});
  EXPECT_EQ(company.of(1).loss(), 3.3125) << "of the newest round that all have told of";
}

TEST(JournalStatus, of_a_run_that_goes_on_after_its_end_is_not_complete) {
  Story story;
  story.add(1, 1, {.round = 1, .fact = event::Commit{.samples = 8, .last = true}});
  EXPECT_TRUE(journal_of(story.logs()).board().complete);
  story.add(1, 9, {.round = 2, .fact = event::Commit{.samples = 8}});
  EXPECT_FALSE(journal_of(story.logs()).board().complete);
}

TEST(JournalStatus, tells_where_samples_went) {
  Story story = story_of_two();
  story.add(2, 0.6, {.fact = event::Start{.microbatch = 8}});
  story.add(2, 5.2, {.round = 5, .peer = PeerId{3}, .fact = event::Reissue{.microbatches = 4}});
  story.add(2, 5.3, {.round = 5, .fact = event::Skip{.sample = 77}});
  story.add(2, 5.4, {.round = 5, .peer = PeerId{1}, .fact = event::Handover{.samples = 16}});
  const SampleLedger expected{.committed = 255, .handed_over = 16, .again = 32, .skipped = 1};
  EXPECT_EQ(journal_of(story.logs()).board().ledger, expected);
  Company company(story);
  company.hear(1, 2, 6);
  company.hear(1, 2, 7);
  EXPECT_EQ(company.of(1).board().ledger, expected) << "each word counts once";

  Story after;
  after.add(2, 8, {.fact = event::Start{.microbatch = 8}});
  after.add(2, 9, {.round = 6, .fact = event::Skip{.sample = 99}});
  company.of(1).take(PeerId{2}, journal_of(after.logs()).status(PeerId{2}, kEpochS + 9), kEpochS + 9);
  EXPECT_EQ(company.of(1).board().ledger.skipped, 2U) << "what its next process tells is added";
}

TEST(JournalStatus, passes_on_the_ledger_of_those_that_are_gone) {
  Story story = story_of_two();
  story.add(2, 0.6, {.fact = event::Start{.microbatch = 8}});
  story.add(2, 5.2, {.round = 5, .peer = PeerId{3}, .fact = event::Reissue{.microbatches = 4}});
  story.add(2, 5.6, {.round = 4, .why = "left the run", .fact = event::Stop{}});
  Journal late;
  late.take(PeerId{1}, journal_of(story.logs()).status(PeerId{1}, kEpochS + 6), kEpochS + 6);
  EXPECT_EQ(late.board().ledger.again, 32U);
}

TEST(JournalStatus, gives_lanes_to_peers_without_a_log) {
  Company company(story_of_two());
  company.hear(1, 2, 5.9);
  double computing_s = 0, averaging_s = 0;
  for (const BoardSpan& span : company.of(1).board(kEpochS + 6).spans) {
    if (span.peer != PeerId{2}) continue;
    if (span.state == PeerState::computing) computing_s += span.to_s - span.from_s;
    if (span.state == PeerState::averaging) averaging_s += span.to_s - span.from_s;
  }
  EXPECT_NEAR(computing_s, 0.8, 1e-4) << "of the last round";
  EXPECT_NEAR(averaging_s, 0.2, 1e-4);
}

TEST(JournalStatus, has_lanes_and_times_of_peers_without_a_log_by_when_their_own_work_was_done) {
  Story story;
  const auto commits = [&](std::uint64_t peer, double calc_s, double hidden_s) {
    story.add(peer, 1, {.round = 1, .fact = event::Accumulate{}});
    story.add(peer, 1.01, {.round = 1, .fact = event::Call{}});
    event::Commit commit{.samples = 32, .samples_total = 64, .calc_s = calc_s, .comm_s = 1 - calc_s};
    if (hidden_s > 0) commit.hidden_s = hidden_s;
    story.add(peer, 2, {.round = 1, .fact = std::move(commit)});
  };
  commits(1, 0.25, 0);
  commits(2, 0.75, 0.125);
  // While the second one worked for round 2, its update waited.
  story.add(2, 2.5, {.round = 1, .fact = event::Apply{.digest = "a"}});
  story.add(2, 2.5, {.round = 2, .fact = event::Accumulate{}});
  story.add(2, 3, {.round = 2, .fact = event::Commit{.samples = 32, .calc_s = 1, .comm_s = 0}});
  Company company(story);
  company.hear(1, 2, 3);
  const Board board = company.of(1).board(kEpochS + 3);
  EXPECT_EQ(board.rounds.front().calc_s, 0.75);
  EXPECT_EQ(board.rounds.front().comm_s, 0.25);
  EXPECT_EQ(company.of(2).status(PeerId{2}, kEpochS + 3).rounds.front().called_s, kEpochS + 1.875);
  double computing_s = 0;
  for (const BoardSpan& span : board.spans)
    if (span.peer == PeerId{2} && span.state == PeerState::computing) computing_s += span.to_s - span.from_s;
  EXPECT_NEAR(computing_s, 1, 1e-4) << "all of its last round";
}

TEST(JournalStatus, shows_other_parameters_at_once) {
  Story story;
  story.rounds(1, 2, {1, 2});
  story.apply(1, 3.5, 2, to_string(Digest{1, 1}));
  story.apply(2, 3.5, 2, to_string(Digest{1, 2}));
  Company company(story);
  EXPECT_EQ(company.of(1).board().identical, false) << "two digests in its own log";
  Story good = story_of_two();
  Story other = story_of_two();
  good.apply(1, 5.2, 5, to_string(Digest{1, 1}));
  other.apply(2, 5.2, 5, to_string(Digest{1, 2}));
  Company first(good), second(other);
  EXPECT_EQ(first.of(1).board().identical, true);
  first.of(1).take(PeerId{2}, second.of(2).status(PeerId{2}, kEpochS + 6), kEpochS + 6);
  EXPECT_EQ(first.of(1).board().identical, false);
}

TEST(JournalStatus, brings_back_a_peer_that_was_counted_out) {
  Story story = story_of_two();
  story.add(1, 5.6, {.round = 5, .peer = PeerId{2}, .why = "silent", .fact = event::Lost{}});
  story.add(2, 9, {.round = 7, .fact = event::Accumulate{}});
  Company company(story);
  EXPECT_EQ(shown(company.of(1).board(), 2).state, PeerState::lost);
  company.hear(1, 2, 9.5);
  const Board board = company.of(1).board();
  EXPECT_EQ(shown(board, 2).state, PeerState::computing);
  EXPECT_EQ(board.interruptions.back().kind, Interruption::Kind::joined);
}

TEST(JournalStatus, passes_on_what_those_cost_that_are_gone) {
  Story story = story_of_two();
  story.add(2, 5.6, {.round = 4, .why = "left the run", .fact = event::Stop{}});
  // Peer 1 has the log of both; peer 3 comes later and hears of it.
  Journal first = journal_of(story.logs());
  Journal late;
  late.take(PeerId{1}, first.status(PeerId{1}, kEpochS + 6), kEpochS + 6);
  const Money expected = first.board(kEpochS + 6).money, told = late.board(kEpochS + 6).money;
  EXPECT_NEAR(told.machine_hours, expected.machine_hours, 1e-9);
  EXPECT_NEAR(told.machines_usd.value(), expected.machines_usd.value(), 1e-9);
  EXPECT_NEAR(told.egress_usd.value(), expected.egress_usd.value(), 1e-9);
  late.take(PeerId{1}, first.status(PeerId{1}, kEpochS + 7), kEpochS + 7);
  EXPECT_NEAR(late.board(kEpochS + 7).money.machine_hours, expected.machine_hours, 1e-9) << "counted once";
}

TEST(JournalStatus, does_not_count_itself_among_those_that_are_gone) {
  Story story = story_of_two();
  story.add(2, 5.6, {.round = 4, .why = "left the run", .fact = event::Stop{}});
  const Journal journal = journal_of(story.logs());
  Journal late;
  late.take(PeerId{2}, journal.status(PeerId{2}, kEpochS + 6), kEpochS + 6);
  EXPECT_NEAR(late.board().money.machine_hours, shown(journal.board(), 2).usage.hours, 1e-9);
}

TEST(JournalStatus, of_a_peer_without_events_is_empty_but_sound) {
  EXPECT_TRUE(is_sound(Journal().status(PeerId{1}, kEpochS)));
}

TEST(JournalStatus, cuts_long_texts_between_characters) {
  Story story;
  std::string why(199, 'x');
  why += "\xc3\xa4\xc3\xa4";
  story.add(1, 1, {.round = 1, .why = why, .fact = event::Wait{.seconds = 1}});
  const wire::Status status = journal_of(story.logs()).status(PeerId{1}, kEpochS + 1);
  ASSERT_TRUE(status.peer.wait);
  EXPECT_EQ(status.peer.wait->text, std::string(199, 'x'));
  EXPECT_TRUE(is_sound(status));
}

}  // namespace
}  // namespace tw::monitor
