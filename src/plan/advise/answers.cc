// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/quantity.h"

namespace tw::plan {
namespace {

constexpr double kMuchTraffic = 0.5;   ///< of the cost
constexpr double kMostTimes = 16;      ///< the largest change of the target batch that is proposed
constexpr double kNearlyLinear = 0.9;  ///< share of linear speed
constexpr double kWorthSaying = 1.01;  ///< more speed than rounding

double cost_times_time(const FleetSpeed& fleet) {
  return fleet.usd_per_h / (fleet.samples_per_s * fleet.samples_per_s);
}

}  // namespace

std::string paying_answer(const std::vector<FleetSpeed>& fleets) {
  const auto best = std::ranges::min_element(fleets, {}, cost_times_time);
  if (best == fleets.end() || best->usd_per_h <= 0) return "";
  const auto next = std::find_if(best + 1, fleets.end(), [&](const FleetSpeed& other) {
    return other.machines > best->machines && other.usd_per_h > best->usd_per_h;
  });
  if (next == fleets.end()) return "";
  const double faster = next->samples_per_s / best->samples_per_s;
  const std::string speed =
      faster < kWorthSaying ? "no more speed" : fmt::format("{:+.0f} % speed", 100 * (faster - 1));
  const std::string limit =
      best->machines == 1 ? "one machine does" : fmt::format("{} machines do", best->machines);
  return fmt::format("More than {} not pay: {} give {} at {:.1f} times the cost per hour.", limit,
                     next->machines, speed, next->usd_per_h / best->usd_per_h);
}

std::string traffic_answer(double traffic_usd, double all_usd, double target_batch_size) {
  if (!(all_usd > 0) || traffic_usd < kMuchTraffic * all_usd) return "";
  double times = 2;
  while (times < kMostTimes && traffic_usd / times > all_usd - traffic_usd) times *= 2;
  return fmt::format("Traffic is {:.0f} % of the cost; a target batch of {} would cut it {:g} times.",
                     100 * traffic_usd / all_usd, significant(times * target_batch_size, 6), times);
}

std::string granularity_answer(double granularity, double target_batch_size, bool hidden) {
  const double share = hidden ? std::min(1.0, granularity) : granularity / (1 + granularity);
  if (!std::isfinite(granularity) || share >= kNearlyLinear) return "";
  const double needed = hidden ? kNearlyLinear : kNearlyLinear / (1 - kNearlyLinear);
  return fmt::format(
      "A granularity of {} gives {:.0f} % of linear speed; {:.0f} % takes {}, a target batch of {}.",
      significant(granularity, 3), 100 * share, 100 * kNearlyLinear, significant(needed, 3),
      significant(std::ceil(target_batch_size * needed / granularity), 3));
}

}  // namespace tw::plan
