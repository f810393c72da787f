// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/report.h"

#include <gtest/gtest.h>

#include <map>

#include "monitor/board/test_board.h"
#include "monitor/report/report_text.h"
#include "monitor/report/test_story.h"

namespace tw::monitor {
namespace {

using world::Phase;

TEST(Report, counts_notices_with_the_time_that_was_used) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.add(
      2, 2.5,
      {.round = 2, .fact = event::Notice{.cause = event::Cause::preempt, .source = "gcp", .deadline_s = 30}});
  story.add(1, 2.75, {.round = 2, .fact = event::Notice{.cause = event::Cause::at_risk, .source = "aws"}});
  story.add(2, 4, {.round = 3, .fact = event::Stop{}});
  story.add(1, 5, {.round = 3, .fact = event::Stop{}});
  const Summary summary = story.summary();
  const std::vector<GivenNotice> expected = {{PeerId{2}, 2, "gcp", "preempt", 30.0, 1.5},
                                             {PeerId{1}, 2, "aws", "at_risk", {}, {}}};
  EXPECT_EQ(summary.notices, expected);
  EXPECT_NE(
      render(summary).find("notice         peer 2 in round 2: preempt by gcp in 30 s, out after 1.50 s\n"),
      std::string::npos);
  EXPECT_NE(render(summary).find("notice         peer 1 in round 2: at_risk by aws\n"), std::string::npos);
}

TEST(Report, counts_what_leaving_peers_handed_over) {
  Story story;
  story.rounds(1, 3, {1, 2, 3});
  story.add(3, 4.5,
            {.round = 4,
             .peer = PeerId{1},
             .fact = event::Handover{.bytes = 2.5e6, .took_s = 0.25, .samples = 48, .round_left_s = 41}});
  story.add(2, 4.75, {.round = 4, .peer = PeerId{1}, .fact = event::Handover{.bytes = 2.5e6, .samples = 16}});
  const Summary summary = story.summary();
  const std::vector<HandOver> expected = {{PeerId{3}, 4, PeerId{1}, 48, 2'500'000, 0.25, 41.0},
                                          {PeerId{2}, 4, PeerId{1}, 16, 2'500'000, {}, {}}};
  EXPECT_EQ(summary.handovers, expected);
  EXPECT_EQ(summary.board.ledger.handed_over, 64U);
  EXPECT_EQ(summary.microbatches_again, 0U);
  for (const char* part : {"handover       peer 3 in round 4 to peer 1: 48 samples, 2.5 MB in 0.25 s; the "
                           "round had 41.0 s to go\n",
                           "handover       peer 2 in round 4 to peer 1: 16 samples, 2.5 MB\n",
                           "saved          64 samples, handed over\n"})
    EXPECT_NE(render(summary).find(part), std::string::npos) << part << "\n" << render(summary);
  EXPECT_EQ(render(summary).find("again"), std::string::npos) << render(summary);
}

/// A run in which peer 3 is lost in round 4, with five microbatches.
Story story_of_a_loss() {
  Story story;
  story.rounds(1, 3, {1, 2, 3});
  story.add(1, 4.5, {.round = 4, .peer = PeerId{3}, .why = "silent", .fact = event::Lost{}});
  story.add(1, 4.5, {.round = 4, .peer = PeerId{3}, .fact = event::Reissue{.microbatches = 5}});
  return story;
}

TEST(Report, counts_what_was_given_out_again_once_in_samples_where_the_logs_say_how_many) {
  Story story = story_of_a_loss();
  EXPECT_EQ(story.summary().microbatches_again, 5U);
  EXPECT_FALSE(story.summary().samples_again);
  EXPECT_NE(render(story.summary())
                .find("again          5 microbatches of lost peers, done or only leased to them\n"),
            std::string::npos)
      << render(story.summary());

  story.add(2, 0.5, {.fact = event::Start{.microbatch = 16}});
  // The next leader says the same, and that nobody does the rest of this round.
  story.add(2, 4.6, {.round = 4, .peer = PeerId{3}, .fact = event::Reissue{.microbatches = 4}});
  story.add(2, 4.7, {.round = 4, .fact = event::Reissue{.microbatches = 40}});
  const Summary summary = story.summary();
  EXPECT_EQ(summary.microbatches_again, 5U);
  EXPECT_EQ(summary.samples_again, 80U);
  ASSERT_EQ(summary.lost.size(), 1U);
  EXPECT_EQ(summary.lost[0].microbatches_again, 5U);
  EXPECT_NE(render(summary).find("only leased to them, at most 80 samples\n"), std::string::npos);
  EXPECT_NE(render(summary).find("microbatches again: 5 (silent)\n"), std::string::npos) << render(summary);
}

TEST(Report, says_how_many_samples_the_rounds_are_short_of_their_batches_whoever_wrote_down_the_loss) {
  Story story;
  story.rounds(1, 2, {1, 2});
  EXPECT_EQ(render(story.summary()).find("carried"), std::string::npos);
  // It contributes nothing to round 2, which began with what round 1 left over.
  story.add(3, 2.9, {.round = 2, .fact = event::Commit{.samples_total = 128, .carried = 32}});
  const Summary summary = story.summary();
  EXPECT_EQ(summary.samples, 128U);
  EXPECT_EQ(summary.samples_carried, 32U);
  EXPECT_NE(render(summary).find("carried        32 samples, lost too late"), std::string::npos)
      << render(summary);
}

TEST(Report, does_not_believe_the_lost_about_the_work_of_others) {
  Story story = story_of_a_loss();
  story.add(3, 4.6, {.round = 4, .peer = PeerId{1}, .fact = event::Reissue{.microbatches = 99}});
  EXPECT_EQ(story.summary().microbatches_again, 5U);
}

TEST(Report, has_the_loss_of_the_newest_batch) {
  Story story;
  story.rounds(1, 4, {1, 2});
  const auto told = [&](std::uint64_t peer, std::uint64_t samples, double loss) {
    story.add(peer, 5.5, {.round = 5, .fact = event::Commit{.samples = samples, .loss = loss}});
  };
  told(1, 32, 2);
  told(2, 96, 1);
  EXPECT_EQ(summarize(story.logs()).loss, 1.25);
}

TEST(Report, of_an_undisturbed_run_counts_rounds_samples_and_time) {
  Story story;
  story.rounds(1, 4, {1, 2, 3});
  story.add(1, 6, {.round = 4, .fact = event::Stop{.bytes_sent = 1000, .bytes_received = 2000}});

  const Summary summary = story.summary();
  EXPECT_EQ(summary.rounds, 4U);
  EXPECT_EQ(summary.samples, 4U * 96);
  EXPECT_NEAR(summary.samples_per_s.value(), 96, 1e-4);
  EXPECT_NEAR(summary.calc_s.value(), 0.8, 1e-9);
  EXPECT_NEAR(summary.comm_s.value(), 0.2, 1e-9);
  EXPECT_NEAR(summary.granularity().value(), 4, 1e-9);
  EXPECT_FALSE(summary.loss.has_value()) << "nobody told one";
  EXPECT_TRUE(summary.identical);
  EXPECT_TRUE(summary.lost.empty());
  EXPECT_TRUE(summary.joined.empty());
  const std::vector<BoardPeer>& peers = summary.board.peers;
  ASSERT_EQ(peers.size(), 3U);
  EXPECT_EQ(peers[0].rounds, 4U);
  EXPECT_EQ(peers[0].samples, 128U);
  EXPECT_EQ(peers[0].digest, "digest-4");
  EXPECT_EQ(peers[0].usage.bytes_sent, 1000U);
  EXPECT_EQ(peers[0].usage.bytes_received, 2000U);
  EXPECT_NEAR(peers[0].usage.hours, 5.0 / 3600, 1e-9);
  EXPECT_NEAR(summary.board.money.machine_hours, (5 + 4 + 4) / 3600.0, 1e-6);
}

TEST(Report, counts_the_samples_that_others_took_of_a_peer_before_it_was_killed) {
  Story story;
  story.rounds(1, 3, {1, 2});
  const auto commits = [&](std::uint64_t writer, Round round, double t) {
    story.add(writer, t,
              {.round = round,
               .fact = event::Commit{.samples_of = {{PeerId{1}, "192-199"}, {PeerId{2}, "200-203"}},
                                     .samples = 8,
                                     .samples_total = 204}});
  };
  const auto samples_of = [&](std::uint64_t peer) {
    const Summary summary = story.summary();
    return std::ranges::find(summary.board.peers, PeerId{peer}, &BoardPeer::peer)->samples;
  };
  commits(1, 4, 5);
  EXPECT_EQ(samples_of(2), 96U) << "it will tell itself";
  story.add(0, 5, {.round = 4, .peer = PeerId{2}, .fact = event::Kill{}});
  EXPECT_EQ(samples_of(1), 104U);
  EXPECT_EQ(samples_of(2), 100U);
  commits(2, 4, 4.9);
  EXPECT_EQ(samples_of(2), 104U) << "its own word goes first";
}

TEST(Report, says_when_a_peer_went_without_tls) {
  Story story;
  story.add(1, 0, {.fact = event::Start{}});
  EXPECT_EQ(story.summary().insecure, false);
  EXPECT_EQ(render(story.summary()).find("--insecure"), std::string::npos);
  story.add(2, 0, {.fact = event::Start{.insecure = true}});
  EXPECT_EQ(story.summary().insecure, true);
  EXPECT_NE(render(story.summary()).find("--insecure"), std::string::npos);
}

TEST(Report, of_nothing_claims_nothing) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.rounds, 0U);
  EXPECT_FALSE(summary.identical);
  EXPECT_NE(render(summary).find("none were logged"), std::string::npos);
}

TEST(Report, measures_detection_from_the_kill_and_extra_time_against_the_rounds_around) {
  Story story;
  story.rounds(1, 5, {1, 2, 3});
  story.add(3, 6.001, {.round = 6, .fact = event::Accumulate{}});
  story.add(0, 6.5, {.round = 6, .peer = PeerId{3}, .fact = event::Kill{}});
  story.add(2, 6.75,
            {.round = 6, .peer = PeerId{3}, .why = "link closed", .fact = event::Lost{.silent_s = 0.6}});
  story.add(1, 6.8,
            {.round = 6, .peer = PeerId{3}, .why = "link closed", .fact = event::Lost{.silent_s = 0.7}});
  story.round(6, 6, 1.4, {1, 2});
  for (Round number = 7; number <= 10; ++number)
    story.round(number, static_cast<double>(number) + 0.4, 1, {1, 2});

  const Summary summary = story.summary();
  ASSERT_EQ(summary.lost.size(), 1U) << "said by two, lost once";
  EXPECT_EQ(summary.lost[0].peer, PeerId{3});
  EXPECT_EQ(summary.lost[0].round, 6U);
  EXPECT_NEAR(summary.lost[0].detected_s.value(), 0.25, 1e-6);
  EXPECT_NEAR(summary.lost[0].extra_s.value(), 0.4, 1e-5);
  EXPECT_EQ(summary.lost[0].why, "link closed");
  EXPECT_TRUE(summary.identical) << "the dead peer is no witness after its death";
  EXPECT_EQ(summary.samples, 5U * 96 + 5 * 64);
}

TEST(Report, takes_silence_for_detection_when_nobody_logged_the_kill) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.add(1, 4.5, {.round = 4, .peer = PeerId{2}, .why = "silent", .fact = event::Lost{.silent_s = 2.0}});
  story.round(4, 4, 2, {1});
  ASSERT_EQ(story.summary().lost.size(), 1U);
  EXPECT_NEAR(story.summary().lost[0].detected_s.value(), 2.0, 1e-9);
}

TEST(Report, lists_a_kill_that_nobody_noticed) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.add(0, 3.9, {.round = 3, .peer = PeerId{2}, .fact = event::Kill{}});
  const Summary summary = story.summary();
  ASSERT_EQ(summary.lost.size(), 1U);
  EXPECT_EQ(summary.lost[0].round, 3U);
  EXPECT_EQ(summary.lost[0].detected_s, std::nullopt);
}

TEST(Report, does_not_believe_one_that_was_cut_off_about_those_that_went_on) {
  Story story;
  story.rounds(1, 2, {1, 2, 3});
  story.add(3, 3.5, {.round = 3, .peer = PeerId{1}, .why = "silent", .fact = event::Lost{}});
  story.add(1, 3.6, {.round = 3, .peer = PeerId{3}, .why = "silent", .fact = event::Lost{}});
  story.rounds(3, 5, {1, 2});
  const Summary summary = story.summary();
  ASSERT_EQ(summary.lost.size(), 1U);
  EXPECT_EQ(summary.lost[0].peer, PeerId{3});
  EXPECT_TRUE(summary.joined.empty());
}

TEST(Report, does_not_believe_the_lost_about_the_others) {
  Story story;
  story.rounds(1, 2, {1, 2, 3});
  story.add(1, 3.5, {.round = 3, .peer = PeerId{3}, .why = "silent", .fact = event::Lost{}});
  story.add(3, 3.6, {.round = 3, .peer = PeerId{1}, .why = "silent", .fact = event::Lost{}});
  story.add(3, 3.6, {.round = 3, .peer = PeerId{2}, .why = "silent", .fact = event::Lost{}});
  story.round(3, 3, 1, {1, 2});
  ASSERT_EQ(story.summary().lost.size(), 1U);
  EXPECT_EQ(story.summary().lost[0].peer, PeerId{3});
}

TEST(Report, takes_no_closing_link_at_the_end_for_a_loss) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.add(2, 4.1, {.round = 3, .fact = event::Stop{}});
  story.add(1, 4.2, {.round = 4, .peer = PeerId{2}, .why = "link closed", .fact = event::Lost{}});
  EXPECT_TRUE(story.summary().lost.empty());
  EXPECT_TRUE(story.summary().identical);
}

TEST(Report, tells_what_a_join_took_from_launch_to_first_contribution) {
  Story story;
  story.add(0, 3.5, {.round = 3, .peer = PeerId{4}, .fact = event::Start{}});
  story.rounds(1, 4, {1, 2});
  story.add(4, 4.2, {.fact = event::Start{}});
  story.add(4, 4.9, {.round = 4, .fact = event::Restore{.digest = "digest-4"}});
  story.rounds(5, 7, {1, 2, 4});
  const Summary summary = story.summary();
  ASSERT_EQ(summary.joined.size(), 1U);
  EXPECT_EQ(summary.joined[0].peer, PeerId{4});
  EXPECT_EQ(summary.joined[0].round, 5U);
  EXPECT_NEAR(summary.joined[0].seconds.value(), 2.501, 1e-6);
  EXPECT_TRUE(summary.identical);
}

TEST(Report, lists_a_peer_that_came_back_as_lost_and_as_joined) {
  Story story;
  story.rounds(1, 3, {1, 2, 3});
  story.add(1, 4.5, {.round = 4, .peer = PeerId{3}, .why = "silent", .fact = event::Lost{}});
  story.rounds(4, 6, {1, 2});
  story.add(3, 6.5, {.round = 6, .fact = event::Restore{.digest = "digest-6"}});
  story.rounds(7, 9, {1, 2, 3});
  const Summary summary = story.summary();
  EXPECT_EQ(summary.lost.size(), 1U);
  ASSERT_EQ(summary.joined.size(), 1U);
  EXPECT_EQ(summary.joined[0].round, 7U);
  EXPECT_NEAR(summary.joined[0].seconds.value(), 1.501, 1e-6);
  EXPECT_TRUE(summary.identical);
}

TEST(Report, says_which_parameters_differ) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.apply(1, 5, 4, "aa");
  story.apply(2, 5, 4, "bb");
  const Summary summary = story.summary();
  EXPECT_FALSE(summary.identical);
  EXPECT_EQ(summary.difference, "after round 4, peer 1 has aa and peer 2 has bb");
  EXPECT_NE(render(summary).find("DIFFER"), std::string::npos);
}

TEST(Report, counts_a_difference_even_when_the_later_rounds_agree) {
  Story story;
  story.apply(1, 0.5, 1, "aa");
  story.apply(2, 0.5, 1, "bb");
  story.rounds(2, 3, {1, 2});
  EXPECT_FALSE(story.summary().identical);
}

TEST(Report, counts_a_difference_even_when_its_peer_fetched_the_state_again) {
  Story story;
  story.apply(1, 0.5, 1, "aa");
  story.apply(2, 0.5, 1, "bb");
  story.add(2, 0.6, {.round = 1, .why = "its parameters differ", .fact = event::Restore{}});
  story.rounds(2, 3, {1, 2});
  const Summary summary = story.summary();
  EXPECT_FALSE(summary.identical);
  EXPECT_NE(summary.difference, "");
}

TEST(Report, does_not_expect_the_last_round_of_one_who_left) {
  Story story;
  story.rounds(1, 3, {1, 2, 3});
  story.add(3, 4, {.round = 3, .fact = event::Leave{}});
  story.add(1, 4, {.round = 3, .peer = PeerId{3}, .fact = event::Leave{}});
  story.rounds(4, 6, {1, 2});
  const Summary summary = story.summary();
  EXPECT_TRUE(summary.identical);
  EXPECT_TRUE(summary.lost.empty());
  EXPECT_NE(render(summary).find("left           peer 3 in round 3\n"), std::string::npos) << render(summary);
}

TEST(Report, finds_the_parameters_identical_even_when_everybody_left) {
  Story story;
  story.rounds(1, 3, {1, 2});
  for (const std::uint64_t peer : {1, 2})
    story.add(peer, 4, {.round = 3, .peer = PeerId{peer}, .fact = event::Leave{}});
  EXPECT_TRUE(story.summary().identical);
  story.apply(2, 4, 3, "other");
  EXPECT_FALSE(story.summary().identical) << "although it said the right thing before";
}

TEST(Report, takes_the_silence_from_whoever_knows_it) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.add(1, 4.5, {.round = 4, .peer = PeerId{2}, .why = "stalled", .fact = event::Lost{}});
  story.add(1, 4.5, {.round = 4, .peer = PeerId{2}, .why = "silent", .fact = event::Lost{.silent_s = 0.4}});
  story.round(4, 4, 2, {1});
  ASSERT_EQ(story.summary().lost.size(), 1U);
  EXPECT_NEAR(story.summary().lost[0].detected_s.value(), 0.4, 1e-9);
}

TEST(Report, counts_rounds_once_that_were_done_again_after_a_checkpoint) {
  Story before;
  before.rounds(1, 5, {1, 2});
  Story after;
  after.add(3, 20,
            {.round = 3,
             .why = "from checkpoint",
             .fact = event::Restore{.digest = "digest-3", .cause = event::Cause::checkpoint}});
  for (Round number = 4; number <= 6; ++number) {
    const double t = 20 + static_cast<double>(number);
    after.add(3, t, {.round = number, .fact = event::Accumulate{}});
    after.add(3, t + 1,
              {.round = number, .fact = event::Commit{.samples = 64, .samples_total = 64 * number}});
    after.apply(3, t + 1, number, "other-" + std::to_string(number));
  }
  auto logs = before.logs();
  for (auto& log : after.logs()) logs.push_back(std::move(log));
  const Summary summary = summarize(logs);
  EXPECT_EQ(summary.rounds, 6U);
  EXPECT_EQ(summary.samples, 6U * 64);
  EXPECT_TRUE(summary.identical) << summary.difference;
  EXPECT_TRUE(summary.joined.empty());
  EXPECT_EQ(summary.board.peers[0].samples, 3U * 32) << "two of its rounds were lost with it";
}

TEST(Report, puts_logs_of_several_machines_on_one_time_line) {
  Story story;
  story.rounds(1, 2, {1, 2});
  story.rounds(3, 4, {2});
  auto logs = story.logs();
  for (LogEntry& entry : logs[1])
    entry.event.at += std::chrono::hours(100);  // booted earlier; same wall clock
  EXPECT_NEAR(summarize(logs).samples_per_s.value(), story.summary().samples_per_s.value(), 1e-4);
}

TEST(Report, says_which_events_are_missing_and_takes_no_gap_for_a_difference) {
  Story story;
  story.rounds(1, 4, {1, 2});
  story.rounds(5, 7, {1});
  story.add(1, 8, {.round = 7, .fact = event::Stop{}});
  story.add(2, 6.5,
            {.round = 7, .why = "No space left on device", .fact = event::Log{.missing = 5, .seconds = 1.5}});
  story.apply(2, 9, 8, "digest-8");
  story.add(2, 9, {.round = 8, .fact = event::Stop{}});
  const Summary summary = story.summary();
  EXPECT_TRUE(summary.identical) << summary.difference;
  ASSERT_EQ(summary.missing.size(), 1U);
  EXPECT_EQ(
      to_string(summary.missing[0]),
      "peer 2: 5 events between 2026-01-01T00:00:05.000Z and 2026-01-01T00:00:06.500Z (No space left on "
      "device)");
  EXPECT_NE(render(summary).find("missing        peer 2: 5 events"), std::string::npos) << render(summary);
}

TEST(Report, counts_the_events_of_files_that_are_not_there) {
  Story story;
  story.rounds(1, 2, {1});
  story.add(1, 50, {.round = 50, .fact = event::Log{.part = 4, .logged = 1000}});
  story.rounds(50, 51, {1});
  const Summary summary = story.summary();
  ASSERT_EQ(summary.missing.size(), 1U);
  EXPECT_EQ(summary.missing[0].events, 1000U - 10) << "five events of each of two rounds are there";
  EXPECT_EQ(summary.rounds, 4U);
  EXPECT_EQ(summary.unlogged_rounds, 47U);
  EXPECT_NE(render(summary).find("4, and 47 that no log holds"), std::string::npos) << render(summary);
}

TEST(Report, says_that_a_log_ends_before_the_others_though_nobody_lost_its_peer) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.rounds(4, 8, {1});
  story.add(1, 9, {.round = 8, .fact = event::Stop{}});
  const Summary summary = story.summary();
  ASSERT_EQ(summary.missing.size(), 1U);
  EXPECT_EQ(summary.missing[0].peer, PeerId{2});
  EXPECT_EQ(summary.missing[0].events, std::nullopt);
  EXPECT_NE(render(summary).find("its log ends in round 3 without a stop, other logs go on to round 8"),
            std::string::npos)
      << render(summary);
}

TEST(Report, says_that_all_logs_end_without_a_stop_once_nobody_goes_on) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.round(4, 4, 1, {1});
  EXPECT_EQ(story.summary().missing.size(), 0U) << "their peers may go on";
  const double end_s = static_cast<double>(kEpochNanos) * 1e-9 + 5;
  EXPECT_EQ(summarize(story.logs(), {}, {.now_s = end_s + 10}).missing.size(), 0U);
  for (const Writers& writers : {Writers{.ended = true}, Writers{.now_s = end_s + 3600}}) {
    const Summary summary = summarize(story.logs(), {}, writers);
    ASSERT_EQ(summary.missing.size(), 2U) << render(summary);
    for (const char* part :
         {"peer 1: events after 2026-01-01T00:00:05.000Z (its log ends in round 4 without a stop)",
          "peer 2: events after 2026-01-01T00:00:04.001Z (its log ends in round 3 without a stop)"})
      EXPECT_NE(render(summary).find(part), std::string::npos) << render(summary);
    EXPECT_FALSE(summary.missing[0].to_unix_nanos);
  }
  for (const std::uint64_t peer : {1, 2}) story.add(peer, 6, {.round = 4, .fact = event::Stop{}});
  EXPECT_EQ(summarize(story.logs(), {}, {.ended = true}).missing.size(), 0U);
}

TEST(Report, takes_several_logs_of_a_peer_that_came_back_on_another_machine) {
  Story story;
  story.rounds(1, 3, {1, 2});
  story.rounds(4, 6, {1});
  story.add(2, 6.5, {.round = 6, .fact = event::Start{}});
  story.rounds(7, 9, {1, 2});
  std::vector<std::vector<LogEntry>> logs = story.logs();
  std::vector<LogEntry>& both = logs.back();
  const auto start = std::ranges::find(both, Phase::start, [](const LogEntry& e) { return e.event.phase(); });
  const std::vector<LogEntry> second(start, both.end());
  both.erase(start, both.end());
  logs.push_back(second);
  const Summary summary = summarize(logs);
  EXPECT_EQ(summary.missing.size(), 0U) << render(summary);
  EXPECT_EQ(summary.rounds, 9U);
  ASSERT_EQ(summary.board.peers.size(), 2U);
  EXPECT_EQ(summary.board.peers[1].rounds, 6U);
  EXPECT_NEAR(summary.board.peers[1].usage.hours * 3600, 3 + 3.5, 0.01) << "those of both machines";
}

TEST(Report, names_contributors_without_a_log) {
  Story story;
  story.rounds(1, 1, {1, 2});
  const auto tell = [&](std::uint64_t peer, double t, Round round) {
    story.add(
        peer, t,
        {.round = round, .fact = event::Commit{.peers = {PeerId{1}, PeerId{2}, PeerId{3}}, .samples = 32}});
    story.apply(peer, t, round, "equal");
  };
  EXPECT_EQ(story.summary().missing.size(), 0U);
  for (const std::uint64_t peer : {1, 2}) tell(peer, 3, 2), tell(peer, 4, 3);
  const Summary summary = story.summary();
  ASSERT_EQ(summary.missing.size(), 1U) << render(summary);
  EXPECT_EQ(summary.missing[0].peer, PeerId{3});
  EXPECT_EQ(summary.missing[0].to_unix_nanos.value_or(0) - summary.missing[0].from_unix_nanos, 1'000'000'000);
  const std::string text = render(summary);
  EXPECT_NE(text.find("it contributed, and none of these logs is its own"), std::string::npos) << text;
  EXPECT_NE(text.find("identical in every round on the peers that have a log here"), std::string::npos)
      << text;
}

TEST(Report, shows_no_control_characters_of_a_reason) {
  Summary summary;
  summary.lost = {{.peer = PeerId{2}, .round = 6, .detected_s = {}, .extra_s = {}, .why = "\x1b[2J\nforged"}};
  EXPECT_NE(render(summary).find("(\\x1b[2J\\nforged)"), std::string::npos) << render(summary);
}

TEST(Report, has_no_line_that_a_text_of_a_program_or_of_another_peer_makes) {
  const std::string forged = "acc\nparameters     identical on all peers in every round\nx";
  Summary summary;
  summary.difference = forged;
  summary.board.evaluations = {{.round = 3, .name = forged, .value = 1}};
  summary.lost = {{.peer = PeerId{2}, .round = 6, .detected_s = {}, .extra_s = {}, .why = forged}};
  summary.notices = {{.peer = PeerId{2}, .source = forged, .kind = forged, .deadline_s = {}, .used_s = {}}};
  summary.missing = {{.peer = PeerId{2}, .events = {}, .why = forged}};
  summary.board.peers = {{.peer = PeerId{2}, .digest = forged}};
  summary.board.links = {{.store = forged, .requests = 1}};
  const std::string text = render(summary);
  EXPECT_NE(text.find("acc\\nparameters"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nparameters     identical"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nx"), std::string::npos) << text;
}

TEST(Summary, of_a_running_peer_has_what_its_board_knows) {
  Board board = full_board();
  board.interruptions.push_back(
      {.kind = Interruption::Kind::lost, .round = 13, .peer = PeerId{2}, .detail = "silent"});
  const Summary summary = summary_of(board);
  EXPECT_EQ(summary.rounds, 12U);
  EXPECT_EQ(summary.samples, 6144U);
  EXPECT_EQ(summary.loss, 0.25);
  EXPECT_EQ(summary.calc_s, 5);
  EXPECT_TRUE(summary.identical);
  ASSERT_EQ(summary.lost.size(), 1U);
  EXPECT_EQ(summary.lost[0].why, "silent");
  EXPECT_FALSE(summary.lost[0].detected_s);
  ASSERT_EQ(summary.notices.size(), 1U);
  EXPECT_EQ(summary.notices[0].deadline_s, 120);
}

TEST(Summary, of_a_running_peer_has_the_speed_of_the_report) {
  Story story;
  story.rounds(1, 15, {1, 2});
  const Summary whole = story.summary();
  Board board = whole.board;
  EXPECT_NEAR(summary_of(board).samples_per_s.value(), whole.samples_per_s.value(), 1e-9);
  board.rounds.erase(board.rounds.begin());
  EXPECT_EQ(summary_of(board).samples_per_s, std::nullopt) << "its first round is not known any more";
}

TEST(Summary, of_a_board_that_knows_nothing_makes_nothing_up) {
  const Summary summary = summary_of(Board{});
  EXPECT_FALSE(summary.identical);
  EXPECT_FALSE(summary.calc_s || summary.loss || summary.board.money.usd());
  EXPECT_FALSE(summary.handovers || summary.microbatches_again || summary.samples_again || summary.insecure)
      << "only whole logs tell these";
  EXPECT_EQ(summary.samples_per_s, std::nullopt);
}

TEST(ReportText, tells_losses_joins_and_parameters) {
  Summary summary;
  summary.rounds = 12;
  summary.samples = 6144;
  summary.samples_per_s = 1024;
  summary.loss = 0.975;
  summary.calc_s = 0.4;
  summary.comm_s = 0.1;
  summary.identical = true;
  summary.lost = {
      {.peer = PeerId{2}, .round = 6, .detected_s = 0.012, .extra_s = 0.25, .why = "link closed"}};
  summary.joined = {{.peer = PeerId{4}, .round = 8, .seconds = 1.5}};
  const std::string text = render(summary);
  for (const char* part : {"6,144 (1,024 samples/s from its beginning)", "0.9750",
                           "4.00 (calculation 0.400 s, communication 0.100 s a round)",
                           "peer 2 in round 6, detected after 0.012 s, cost +0.250 s (link closed)",
                           "peer 4 in round 8, contributed after 1.500 s", "identical on all peers"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(ReportText, says_why_a_run_is_over_short_of_its_goal) {
  Summary summary;
  summary.board.round = 36;
  summary.board.last_round = 400;
  EXPECT_EQ(render(summary).find("\nover "), std::string::npos);
  summary.board.ended = "its budget is spent";
  const std::string text = render(summary);
  EXPECT_NE(text.find("\nover           its budget is spent, in round 36 of 400\n"), std::string::npos)
      << text;
}

TEST(ReportText, names_what_delayed_the_run_and_how_much_averaging_was_hidden) {
  Summary summary;
  summary.rounds = 1;
  summary.board.rounds = {{.round = 1, .begun_s = 100, .committed_s = 200}};
  summary.board.speed = {.samples_per_s = 1110, .hidden = 0.75};
  summary.board.delays = {
      {.cause = Delay::Cause::loader, .peer = PeerId{3}, .seconds = 25, .usd = 1.5},
      {.cause = Delay::Cause::disk, .peer = PeerId{4}, .seconds = 0.5},
  };
  const std::string text = render(summary);
  EXPECT_NE(
      text.find(
          "delayed by     the data loader of peer 3: 25 s (25 % of the run, 1.50 USD); give its loader"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("disk"), std::string::npos) << "half a per cent is not worth a line";
  EXPECT_NE(text.find("overlap        75 % of averaging was hidden"), std::string::npos) << text;
  EXPECT_NE(text.find("1,110 over the last ten rounds"), std::string::npos) << text;
  summary.board.rounds = {{.round = 1, .begun_s = 100, .committed_s = 109}};
  EXPECT_EQ(render(summary).find("delayed by"), std::string::npos) << "nine seconds tell nothing";
}

}  // namespace
}  // namespace tw::monitor
