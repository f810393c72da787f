// SPDX-License-Identifier: Apache-2.0
// Time of a decision of the spot policy `live`, learning and dynamic programming included, on one core.
//
//   bench_spot_decision [--zones N] [--work-h H] [--deadline-h H]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "base/median.h"
#include "plan/advise/spot_policy.h"

namespace tw::bench {
namespace {

plan::SpotView view_of(int zones, double work_h, double deadline_h) {
  plan::SpotView view{.work_left_h = work_h,
                      .time_left_h = deadline_h,
                      .change_over_h = 0.2,
                      .on_demand_usd_h = 1,
                      .zones = {},
                      .together = {.up = true, .age_h = 1},
                      .outlook = plan::prior_without("")};
  for (int zone = 0; zone < zones; ++zone)
    view.zones.push_back({.name = fmt::format("zone {}", zone),
                          .sight = {.up = zone % 2 == 0, .age_h = 0.5 * zone},
                          .spot_usd_h = 0.3,
                          .hazards = plan::prior_without("")});
  if (zones > 1) view.elsewhere[3] = 0.8;
  return view;
}

double ms_of(plan::SpotPolicy& policy, const plan::SpotView& view) {
  const auto begin = std::chrono::steady_clock::now();
  policy.decide(view);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void measure(int zones, double work_h, double deadline_h) {
  std::vector<double> first, next;
  const plan::SpotView view = view_of(zones, work_h, deadline_h);
  for (int turn = 0; turn < 31; ++turn) {
    plan::LivePolicy policy;
    first.push_back(ms_of(policy, view));
    next.push_back(ms_of(policy, view));
  }
  fmt::print(
      "{} zones, {:g} h of work in {:g} h: with a new table {:.2f} ms (slowest {:.2f}), else {:.3f} ms\n",
      zones, work_h, deadline_h, median(first), *std::ranges::max_element(first), median(next));
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  CLI::App app{"Time of a decision of the spot policy live"};
  int zones = 9;
  double work_h = 48, deadline_h = 64;
  app.add_option("--zones", zones, "zones of the market")->capture_default_str();
  app.add_option("--work-h", work_h, "hours of work")->capture_default_str();
  app.add_option("--deadline-h", deadline_h, "hours until the deadline")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tw::bench::measure(zones, work_h, deadline_h);
  return 0;
}
