// SPDX-License-Identifier: Apache-2.0
#include "plan/output/replay_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kHour = 3600;

/// Waits, under any name.
class Waiting : public SpotPolicy {
 public:
  explicit Waiting(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }

  SpotDecision decide(const SpotView&) override {
    ++asked_;
    return {SpotAction::wait, 0, ""};
  }

  int asked() const { return asked_; }

 private:
  std::string name_;
  int asked_ = 0;
};

ReplayTask task() {
  return {.job = {.work_s = 4 * kHour,
                  .deadline_s = 6 * kHour,
                  .change_over_s = 600,
                  .machines = 0,
                  .spot_usd_h = 1,
                  .on_demand_usd_h = 3},
          .every_s = 24 * kHour};
}

std::vector<AvailabilityTrace> always(double hours) {
  return {{.id = "always", .changes = {{0, 1}, {hours * kHour, 1}}}};
}

TEST(ReplayTable, the_picture_shows_the_name_of_a_policy_as_it_is) {
  Waiting own("./mine --a <b> & c");
  ReplayTask with_own = task();
  with_own.own = &own;
  const std::string svg = to_svg(replay_table(with_own, always(30)).value());
  EXPECT_THAT(svg, HasSubstr("./mine --a &lt;b&gt; &amp; c"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(ReplayTable, more_starts_than_anybody_waits_for_are_refused) {
  ReplayTask often = task();
  often.every_s = 360;
  const auto table = replay_table(often, always(300));
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().message, "--every-h 0.1: more than 1000 starts along always; expected fewer");
}

TEST(ReplayTable, as_many_machines_as_nobody_waits_for_are_refused_unless_the_user_says_how_many) {
  auto crowd = always(30);
  for (auto& change : crowd[0].changes) change.available = 1'000'000'000;
  EXPECT_EQ(
      replay_table(task(), crowd).error().message,
      "always: 1000000000 machines are available at most, and a replay has up to 256; give --machines N");
  ReplayTask few = task();
  few.job.machines = 2;
  EXPECT_EQ(replay_table(few, crowd).value().rows.front().machines, 2);
}

TEST(ReplayTable, says_how_far_it_is) {
  ReplayTask often = task();
  often.every_s = 6 * kHour;
  std::vector<double> shares;
  auto two = always(24);
  two.push_back({.id = "again", .changes = two[0].changes});
  ASSERT_TRUE(replay_table(often, two, [&](double share) {
    shares.push_back(share);
    return true;
  }));
  EXPECT_EQ(shares, (std::vector<double>{0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875}));
}

TEST(ReplayTable, is_stopped_once_the_users_own_policy_has_played_its_first_start) {
  Waiting own("mine");
  ReplayTask often = task();
  often.every_s = 6 * kHour;
  often.own = &own;
  std::vector<int> asked;
  EXPECT_FALSE(replay_table(often, always(30), [&](double) {
    asked.push_back(own.asked());
    return false;
  }));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_GT(asked.front(), 0);
}

TEST(ReplayTable, a_deadline_beyond_the_traces_is_told_with_the_time_that_they_cover) {
  auto zones = always(5);
  EXPECT_EQ(replay_table(task(), zones).error().message,
            "--deadline-h 6: no trace is as long; the longest has 5 h");
  zones = {{.id = "z-a", .changes = {{0, 1}, {100'000, 1}}},
           {.id = "z-b", .changes = {{500'000, 1}, {600'000, 1}}}};
  ReplayTask both = task();
  both.market = "z-";
  EXPECT_EQ(replay_table(both, zones).error().message,
            "--deadline-h 6: the traces of --zones z- have only 0 h in common: z-a ends at 100000 s, z-b "
            "begins at 500000 s");
  zones[1].changes.front().at_s = 89'200;
  EXPECT_EQ(replay_table(both, zones).error().message,
            "--deadline-h 6: the traces of --zones z- have only 3 h in common");
}

TEST(ReplayTable, an_unknown_market_is_named_as_it_was_asked_for) {
  ReplayTask nowhere = task();
  nowhere.market = "nowhere";
  EXPECT_THAT(replay_table(nowhere, always(30)).error().message, HasSubstr("--zones nowhere: no such trace"));
}

}  // namespace
}  // namespace tw::plan
