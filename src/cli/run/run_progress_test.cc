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

TEST(RunProgress, a_zone_has_no_machine_since_its_last_one_was_lost) {
  const std::vector<std::vector<monitor::LogEntry>> logs{
      {start(0, 1, "aws:us-east-1"), entry(0.1, 1, Phase::accumulate, 1), entry(2, 1, Phase::lost, 5, 2),
       entry(2.1, 1, Phase::accumulate, 6)},
      {start(0, 2, "aws:us-west-2"), entry(0.1, 2, Phase::accumulate, 1)}};
  const plan::RunProgress progress = progress_of(logs, unix_s(2.5));
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
  const plan::RunProgress progress = progress_of(logs, unix_s(5));
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
  const plan::RunProgress progress = progress_of(logs, unix_s(2.5));
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
  const plan::RunProgress progress = progress_of(logs, unix_s(1));
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
  EXPECT_NEAR(progress_of(logs, unix_s(50)).elapsed_h, 1, 1e-6);
  for (auto& log : logs) {
    log.pop_back();
    log.back().event.fact = event::Commit{.samples = 900, .samples_total = 900};
  }
  logs[0][0].event.fact = event::Start{.site = "aws:us-east-1:a", .last_round = 9};
  logs[1][0].event.fact = event::Start{.site = "aws:us-west-2:a", .last_round = 9};
  EXPECT_NEAR(progress_of(logs, unix_s(50)).elapsed_h, 50, 1e-6);
  const plan::Paid paid = progress_of(logs, unix_s(50), {{PeerId{1}, 2.0}}).paid;
  EXPECT_NEAR(paid.priced_hours, 0.9, 1e-9);
  EXPECT_NEAR(paid.machines_usd, 1.8, 1e-9);
}

TEST(RunProgress, counts_the_hours_of_a_peer_that_only_others_logged) {
  const std::vector<std::vector<monitor::LogEntry>> logs{
      {start(0, 1, "aws:us-east-1"), entry(0.1, 1, Phase::accumulate, 1), entry(1, 1, Phase::join, 1, 2),
       entry(3, 1, Phase::lost, 5, 2), entry(3, 1, Phase::accumulate, 6)}};
  const plan::RunProgress progress = progress_of(logs, unix_s(3));
  EXPECT_NEAR(progress.peer_hours, 3 + 2, 1e-6);
  EXPECT_EQ(progress.paid.priced_hours, 0);
}

}  // namespace
}  // namespace tw::cli
