// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_progress.h"

#include <gtest/gtest.h>

#include <tuple>

#include "monitor/report/report.h"

namespace tw::cli {
namespace {

using world::Phase;

constexpr std::int64_t kBegun_s = 1'790'000'000;

std::int64_t unix_s(double hour) { return kBegun_s + static_cast<std::int64_t>(hour * 3600); }

monitor::LogEntry entry(double hour, std::uint64_t writer, Phase phase, Round round = 0,
                        std::uint64_t about = 0) {
  monitor::LogEntry made{.writer = PeerId{writer}, .unix_nanos = unix_s(hour) * 1'000'000'000, .event = {}};
  made.event.at = Instant{} + from_seconds(hour * 3600);
  made.event.fact = world::fact_of(phase);
  made.event.round = round;
  if (about != 0) made.event.peer = PeerId{about};
  return made;
}

monitor::LogEntry start(double hour, std::uint64_t writer, const std::string& site) {
  monitor::LogEntry made = entry(hour, writer, Phase::start);
  made.event.fact = event::Start{.site = site};
  return made;
}

plan::RunProgress progress_by(const std::vector<std::vector<monitor::LogEntry>>& logs,
                              std::int64_t now_unix_s, const PeerPrices& prices = {}) {
  return progress_of(monitor::HeldLogs(logs), now_unix_s, prices).value();
}

TEST(RunProgress, a_zone_has_no_machine_since_its_last_one_was_lost) {
  const std::vector<std::vector<monitor::LogEntry>> logs{
      {start(0, 1, "aws:us-east-1"), entry(0.1, 1, Phase::accumulate, 1), entry(2, 1, Phase::lost, 5, 2),
       entry(2.1, 1, Phase::accumulate, 6)},
      {start(0, 2, "aws:us-west-2"), entry(0.1, 2, Phase::accumulate, 1)}};
  const plan::RunProgress progress = progress_by(logs, unix_s(2.5));
  ASSERT_EQ(progress.zones.size(), 2U);
  const plan::ZoneSeen& east = progress.zones[0];
  const plan::ZoneSeen& west = progress.zones[1];
  EXPECT_TRUE(east.sight.up);
  EXPECT_EQ(east.living, 1);
  EXPECT_NEAR(east.sight.age_h, 2.5, 0.01);
  EXPECT_FALSE(west.sight.up);
  EXPECT_EQ(west.living, 0);
  EXPECT_NEAR(west.sight.age_h, 0.5, 0.01);
  EXPECT_EQ(west.spells.up[static_cast<std::size_t>(plan::spot_age_bin(2))].ends, 1);
  EXPECT_NEAR(west.spells.up[0].hours, plan::kSpotAge_h[1], 1e-9);
}

TEST(RunProgress, a_machine_that_left_by_itself_or_by_sigterm_is_not_taken) {
  monitor::LogEntry notice = entry(2, 2, Phase::notice, 5);
  notice.event.fact = event::Notice{.source = "signal"};
  const std::vector<std::vector<monitor::LogEntry>> logs{
      {start(0, 1, "aws:us-east-1"), entry(0.1, 1, Phase::accumulate, 1), entry(2.1, 1, Phase::leave, 5, 2),
       entry(2.2, 1, Phase::accumulate, 6)},
      {start(0, 2, "aws:us-west-2"), entry(0.1, 2, Phase::accumulate, 1), notice}};
  const plan::RunProgress progress = progress_by(logs, unix_s(5));
  ASSERT_EQ(progress.zones.size(), 2U);
  const plan::ZoneSeen& west = progress.zones[1];
  EXPECT_EQ(west.living, 0);
  EXPECT_TRUE(west.sight.up);
  double hours = 0, ends = 0;
  for (const auto& bin : west.spells.up) {
    hours += bin.hours;
    ends += bin.ends;
  }
  EXPECT_NEAR(hours, 2.1, 0.01);
  EXPECT_EQ(ends, 0);
}

TEST(RunProgress, a_zone_where_another_machine_lives_is_available) {
  const std::vector<std::vector<monitor::LogEntry>> logs{
      {start(0, 1, "aws:us-west-2"), entry(0.1, 1, Phase::accumulate, 1), entry(2, 1, Phase::lost, 5, 2),
       entry(2.1, 1, Phase::accumulate, 6)},
      {start(0, 2, "aws:us-west-2"), entry(0.1, 2, Phase::accumulate, 1)}};
  const plan::RunProgress progress = progress_by(logs, unix_s(2.5));
  ASSERT_EQ(progress.zones.size(), 1U);
  EXPECT_TRUE(progress.zones[0].sight.up);
  EXPECT_EQ(progress.zones[0].living, 1);
  EXPECT_NEAR(progress.zones[0].sight.age_h, 2.5, 0.01);
}

/// Two peers of one cloud for an hour, at two prices; each sends 10 GB to the other's site, and reads 1 GB.
std::vector<std::vector<monitor::LogEntry>> logs_with_prices() {
  std::vector<std::vector<monitor::LogEntry>> logs;
  for (const auto& [id, site, other, usd_per_h] :
       {std::tuple{1U, "aws:us-east-1:a", "aws:us-west-2:a", 3.6},
        std::tuple{2U, "aws:us-west-2:a", "aws:us-east-1:a", 7.2}}) {
    auto& log = logs.emplace_back();
    log.push_back(entry(0, id, Phase::start));
    log.back().event.fact = event::Start{.site = site, .last_round = 4, .usd_per_h = usd_per_h};
    log.push_back(entry(0.5, id, Phase::traffic));
    log.back().event.fact =
        event::Traffic{.to = {{other, 10'000'000'000}}, .from = {{"s3:us-east-1", 1'000'000'000}}};
    log.push_back(entry(0.9, id, Phase::commit, 4));
    log.back().event.fact = event::Commit{.samples = 900, .samples_total = 900, .last = true};
    log.push_back(entry(1, id, Phase::stop, 4));
  }
  return logs;
}

TEST(RunProgress, the_cost_so_far_is_that_of_the_report) {
  const auto logs = logs_with_prices();
  const plan::RunProgress progress = progress_by(logs, unix_s(1));
  const plan::Paid& paid = progress.paid;
  EXPECT_NEAR(progress.peer_hours, 2, 1e-9);
  EXPECT_NEAR(paid.priced_hours, 2, 1e-9);
  EXPECT_NEAR(paid.machines_usd, 10.8, 1e-9);
  ASSERT_TRUE(paid.averaging_usd && paid.reads_usd);
  EXPECT_GT(*paid.averaging_usd, 0);
  EXPECT_NEAR(paid.machines_usd + *paid.averaging_usd + *paid.reads_usd + paid.writes_usd,
              monitor::summarize(logs).board.money.usd().value(), 1e-9);
}

TEST(RunProgress, a_complete_run_takes_no_more_time_and_a_price_of_the_state_stands_in) {
  auto logs = logs_with_prices();
  EXPECT_NEAR(progress_by(logs, unix_s(50)).elapsed_h, 1, 1e-6);
  for (auto& log : logs) {
    log.pop_back();
    log.back().event.fact = event::Commit{.samples = 900, .samples_total = 900};
  }
  logs[0][0].event.fact = event::Start{.site = "aws:us-east-1:a", .last_round = 9};
  logs[1][0].event.fact = event::Start{.site = "aws:us-west-2:a", .last_round = 9};
  EXPECT_NEAR(progress_by(logs, unix_s(50)).elapsed_h, 50, 1e-6);
  const plan::Paid paid = progress_by(logs, unix_s(50), {{PeerId{1}, 2.0}}).paid;
  EXPECT_NEAR(paid.priced_hours, 0.9, 1e-9);
  EXPECT_NEAR(paid.machines_usd, 1.8, 1e-9);
}

/// The first peer's log: eight rounds of 0.1 h by three peers, then three of 0.3 h by it alone. The first of
/// them waits half an hour more for those that are lost.
std::vector<monitor::LogEntry> log_of_one_that_is_left() {
  std::vector<monitor::LogEntry> log{start(0, 1, "aws:us-east-1")};
  double hour = 0;
  for (Round round = 1; round <= 11; ++round) {
    const bool alone = round > 8;
    if (round == 9)
      for (const std::uint64_t gone : {2, 3}) log.push_back(entry(hour, 1, Phase::lost, round, gone));
    hour += round == 9 ? 0.8 : alone ? 0.3 : 0.1;
    log.push_back(entry(hour, 1, Phase::commit, round));
    log.back().event.fact =
        event::Commit{.peers = alone ? std::vector{PeerId{1}} : std::vector{PeerId{1}, PeerId{2}, PeerId{3}},
                      .samples = 900,
                      .samples_total = 900 * round};
  }
  return log;
}

TEST(RunProgress, the_recent_speed_is_that_of_the_peers_that_made_it) {
  const auto log = log_of_one_that_is_left();
  const auto before = std::vector(log.begin(), log.begin() + 9);
  const plan::RunProgress all = progress_by({before}, unix_s(0.8));
  EXPECT_NEAR(all.measured.peers, 3, 1e-9);
  const plan::RunProgress left = progress_by({log}, unix_s(2.2));
  EXPECT_EQ(left.losses, 2);
  EXPECT_NEAR(left.measured.peers, (7 * 0.1 * 3 + 2 * 0.3) / 1.3, 1e-3) << "without the round of the loss";
  EXPECT_NEAR(left.measured.samples_per_s / left.measured.peers, all.measured.samples_per_s / 3, 1e-3)
      << "each is as fast as before";
  EXPECT_NEAR(left.samples_per_s, 10 * 900 / (2.1 * 3600), 1e-3) << "of all ten rounds";
  EXPECT_EQ(left.samples_per_s, monitor::summarize({log}).board.speed.samples_per_s);
}

TEST(RunProgress, the_round_of_a_loss_tells_no_speed_also_where_the_lost_peer_had_a_part_in_it) {
  auto log = log_of_one_that_is_left();
  const plan::RunSpeed without = progress_by({log}, unix_s(2.2)).measured;
  for (monitor::LogEntry& one : log)
    if (one.event.round == 9 && one.event.as<event::Commit>())
      one.event.fact =
          event::Commit{.peers = {PeerId{1}, PeerId{2}, PeerId{3}}, .samples = 900, .samples_total = 8100};
  const plan::RunSpeed with = progress_by({log}, unix_s(2.2)).measured;
  EXPECT_NEAR(with.samples_per_s, without.samples_per_s, 1e-9);
  EXPECT_NEAR(with.peers, without.peers, 1e-9);
}

/// Ten rounds of 0.1 h by one peer, and one more after all were gone for an hour.
std::vector<monitor::LogEntry> log_of_one_that_is_resumed() {
  std::vector<monitor::LogEntry> log{start(0, 1, "aws:us-east-1")};
  for (Round round = 1; round <= 11; ++round) {
    const double begun_h = 0.1 * static_cast<double>(round - 1) + (round > 10 ? 1 : 0);
    if (round > 10) {
      log.push_back(start(begun_h, 1, "aws:us-east-1"));
      log.push_back(entry(begun_h, 1, Phase::restore, round - 1));
      log.back().event.fact = event::Restore{.digest = "0a", .cause = event::Cause::checkpoint};
    }
    log.push_back(entry(begun_h, 1, Phase::accumulate, round));
    log.push_back(entry(begun_h + 0.1, 1, Phase::commit, round));
    log.back().event.fact = event::Commit{.samples = 900, .samples_total = 900 * round};
  }
  return log;
}

TEST(RunProgress, the_wait_until_all_that_were_lost_are_started_again_is_no_speed_of_the_machines) {
  const plan::RunProgress progress = progress_by({log_of_one_that_is_resumed()}, unix_s(2.1));
  EXPECT_EQ(progress.losses, 0) << "nobody was left to tell";
  EXPECT_NEAR(progress.measured.samples_per_s, 900 / 360.0, 1e-6);
  EXPECT_NEAR(progress.samples_per_s, 10 * 900 / 7200.0, 1e-6);
}

TEST(RunProgress, counts_the_hours_of_a_peer_that_only_others_logged) {
  const std::vector<std::vector<monitor::LogEntry>> logs{
      {start(0, 1, "aws:us-east-1"), entry(0.1, 1, Phase::accumulate, 1), entry(1, 1, Phase::join, 1, 2),
       entry(3, 1, Phase::lost, 5, 2), entry(3, 1, Phase::accumulate, 6)}};
  const plan::RunProgress progress = progress_by(logs, unix_s(3));
  EXPECT_NEAR(progress.peer_hours, 3 + 2, 1e-6);
  EXPECT_EQ(progress.paid.priced_hours, 0);
}

}  // namespace
}  // namespace tw::cli
