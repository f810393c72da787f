// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_progress.h"

#include <gtest/gtest.h>

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
  notice.event.fact = event::Notice{.source = "SIGTERM"};
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

}  // namespace
}  // namespace tw::cli
