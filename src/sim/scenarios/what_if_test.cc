// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

/// Four machines of 100 samples/s, one of them an anchor, rounds of about 5 s.
WhatIf small() {
  WhatIf what;
  what.length = 120s;
  what.parameters = 1e5;
  what.target_batch_size = 2048;
  what.microbatch = 16;
  for (int slot = 0; slot < 3; ++slot) what.lifetimes.push_back({slot, 0s, what.length, false});
  return what;
}

double sum_of(const LostShares& lost) {
  return lost.joining + lost.averaging + lost.recomputed + lost.leaving + lost.waiting;
}

TEST(WhatIf, nearly_all_is_useful_while_nobody_goes) {
  const WhatIfReport report = what_if(small());
  EXPECT_TRUE(report.violations.empty()) << report.violations.front();
  EXPECT_EQ(report.simulated, 120s);
  EXPECT_GT(report.goodput, 0.9);
  EXPECT_LT(report.goodput, 1.0);
  EXPECT_NEAR(report.goodput + sum_of(report.lost), 1, 1e-9);
  EXPECT_NEAR(report.capacity_samples, 120 * 4 * 100 / 1.05, 1);
  EXPECT_EQ(report.samples, report.rounds * 2048);
  EXPECT_EQ(report.recomputed_samples, 0);
  EXPECT_EQ(report.losses, 0);
  EXPECT_EQ(report.rounds_lost, 0);
  EXPECT_EQ(report.members_least, 4);
}

TEST(WhatIf, tells_after_each_round_how_far_it_is) {
  std::vector<double> shares;
  const WhatIfReport report = what_if(small(), [&](double share) { shares.push_back(share); });
  EXPECT_EQ(shares.size(), report.rounds);
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_GT(shares.back(), 0.9);
  EXPECT_LE(shares.back(), 1);
}

TEST(WhatIf, a_machine_that_vanishes_costs_its_samples_and_no_round) {
  WhatIf what = small();
  what.lifetimes[1] = {1, 0s, 62s, true};
  const WhatIfReport report = what_if(what);
  EXPECT_TRUE(report.violations.empty()) << report.violations.front();
  EXPECT_EQ(report.losses, 1);
  EXPECT_EQ(report.rounds_lost, 0);
  EXPECT_GT(report.recomputed_samples, 0);
  EXPECT_LT(report.recomputed_samples, 1024);
  EXPECT_GT(report.goodput, 0.85);
  EXPECT_EQ(report.members_least, 3);
  EXPECT_LT(report.recover_s_worst, 5);
  EXPECT_NEAR(report.capacity_samples, (3 * 120 + 62) * 100 / 1.05, 1);
}

TEST(WhatIf, a_machine_with_notice_hands_in_what_it_did) {
  WhatIf what = small();
  what.lifetimes[1] = {1, 0s, 62s, true};
  what.notice = 30s;
  const WhatIfReport report = what_if(what);
  EXPECT_EQ(report.leaves, 1);
  EXPECT_EQ(report.losses, 0);
  EXPECT_EQ(report.recomputed_samples, 0);
  EXPECT_GT(report.lost.leaving, 0);
}

TEST(WhatIf, a_machine_that_comes_starts_up_and_joins) {
  WhatIf what = small();
  what.lifetimes[2] = {2, 20s, what.length, false};
  what.start_up = 30s;
  const WhatIfReport report = what_if(what);
  EXPECT_EQ(report.machines, 4);
  EXPECT_EQ(report.members_most, 4);
  EXPECT_EQ(report.members_least, 3);
  EXPECT_GT(report.lost.joining, 0);
  EXPECT_LT(report.lost.joining * report.capacity_samples, 100) << "it works for the round that it finds";
  // Start-up is paid for but is no capacity.
  EXPECT_NEAR(report.capacity_samples, (3 * 120 + 70) * 100 / 1.05, 1);
  EXPECT_NEAR(report.machine_hours, (2 * 120 + 100) / 3600.0, 1e-9);
}

TEST(WhatIf, what_it_costs) {
  WhatIf what = small();
  what.usd_per_h = 0.5;
  what.anchor_usd_per_h = 2;
  what.egress_usd_per_gb = 0.1;
  const WhatIfReport report = what_if(what);
  // Each round everybody sends its gradients and its part of the mean in fp16: 2 * 3/4 * 200 kB.
  EXPECT_NEAR(report.sent_gb, static_cast<double>(report.rounds) * 4 * 1.5 * 200e3 / 1e9,
              0.25 * report.sent_gb);
  EXPECT_NEAR(report.usd, 3 * 0.5 / 30 + 2.0 / 30 + 0.1 * report.sent_gb, 1e-9);
  EXPECT_NEAR(report.usd_per_million_samples, report.usd / static_cast<double>(report.samples) * 1e6, 1e-9);
}

TEST(WhatIf, names_anchors_that_its_cost_leaves_out) {
  const auto has = [](const WhatIf& what, const char* words) {
    return to_string(what, what_if(what)).find(words) != std::string::npos;
  };
  WhatIf what = small();
  what.length = 360s;
  EXPECT_FALSE(has(what, "without a price")) << "there is no price at all";
  what.usd_per_h = 0.5;
  EXPECT_TRUE(has(what, "; 1 anchor for 0.1 h without a price (--anchor-usd-per-h))\n"));
  what.anchors = 2;
  EXPECT_TRUE(has(what, "; 2 anchors for 0.1 h without a price"));
  what.anchor_usd_per_h = 1;
  EXPECT_FALSE(has(what, "without a price"));
}

TEST(WhatIf, a_machine_that_its_owner_gives_up_leaves_in_time) {
  WhatIf what = small();
  what.lifetimes[1] = {.slot = 1, .goes = 62s, .given_up = true, .on_demand = true, .usd_per_h = 3};
  what.policy = PolicyCourse{.name = "made up", .work_h = 4 * 120.0 / 3600};
  const WhatIfReport report = what_if(what);
  EXPECT_TRUE(report.violations.empty()) << report.violations.front();
  EXPECT_EQ(report.losses, 0);
  EXPECT_EQ(report.leaves, 1);
  EXPECT_NEAR(report.on_demand_hours, 62.0 / 3600, 1e-9);
  EXPECT_NEAR(report.machine_hours, 2 * 120.0 / 3600, 1e-9);
  EXPECT_NEAR(report.usd, 3 * 62.0 / 3600, 1e-9) << "the others cost nothing";
  EXPECT_NEAR(report.planned_samples, 120 * 4 * 100 / 1.05, 1);
}

TEST(WhatIf, the_run_ends_when_everybody_is_gone) {
  WhatIf what = small();
  what.anchors = 0;
  for (MachineLifetime& lifetime : what.lifetimes) lifetime = {lifetime.slot, 0s, 60s, true};
  const WhatIfReport report = what_if(what);
  EXPECT_LT(report.simulated, 61s);
  EXPECT_GT(report.rounds, 0U);
  EXPECT_NE(to_string(what, report).find("everybody was gone"), std::string::npos);
}

TEST(WhatIf, a_slower_network_costs_averaging) {
  WhatIf what = small();
  what.parameters = 5e6;
  const double fast = what_if(what).lost.averaging;
  what.link_mbit = 100;
  EXPECT_GT(what_if(what).lost.averaging, 3 * fast);
}

/// While three machines average, thirteen others take 300 MB of state each over their lines.
TEST(WhatIf, no_member_is_left_out_because_many_join_while_it_averages) {
  for (const std::uint64_t seed : {1, 2, 5, 6}) {
    WhatIf what;
    what.seed = seed;
    what.anchors = 3;
    what.length = 60s;
    what.target_batch_size = 6144;
    for (int slot = 0; slot < 13; ++slot) what.lifetimes.push_back({slot, 36s, what.length, false});
    const WhatIfReport report = what_if(what);
    EXPECT_TRUE(report.violations.empty()) << "seed " << seed << ": " << report.violations.front();
    EXPECT_EQ(report.recomputed_samples, 0) << "seed " << seed;
    EXPECT_EQ(report.members_most, 16) << "seed " << seed;
  }
}

TEST(WhatIf, the_seed_decides) {
  WhatIf what = small();
  what.lifetimes[1] = {1, 0s, 62s, true};
  const WhatIfReport once = what_if(what);
  const WhatIfReport again = what_if(what);
  EXPECT_EQ(once.events, again.events);
  EXPECT_EQ(once.goodput, again.goodput);
}

}  // namespace
}  // namespace tw::sim
