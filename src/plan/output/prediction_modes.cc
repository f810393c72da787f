// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "plan/input/named_work.h"

namespace tw::plan {
namespace {

struct OneMode {
  std::string_view name;
  bool overlaps = false;
  double fragments = 1;
};

constexpr OneMode kModes[] = {
    {"sync", false}, {"delayed", true}, {"local", false}, {"streaming", true, kFragments}};
constexpr double kMostWaiting = 0.05;
/// Granularities from which sync, then delayed, are enough (docs/modes.md).
constexpr double kOfSync = 10, kOfDelayed = 1;

Result<ModePoint> point_of(const OneMode& mode, double samples, Workload workload,
                           const std::vector<PeerGroup>& peers) {
  workload.delayed = mode.overlaps;
  workload.target_batch_size = samples;
  workload.bytes_per_param /= mode.fragments;
  TW_TRY(auto prediction, predict(workload, peers));
  return ModePoint{std::string(mode.name), samples, std::move(prediction)};
}

/// Averaging takes as long for any number of samples.
double least_samples(const ModePoint& point, bool overlaps) {
  const double calc_s = point.prediction.comm_s.value * (overlaps ? 1 : 1 / kMostWaiting - 1);
  return std::max(point.round_samples, std::ceil(calc_s * point.prediction.local_sps.value));
}

const ModePoint& found(const std::vector<ModePoint>& points, std::string_view mode, bool least) {
  const auto half = points.begin() + static_cast<std::ptrdiff_t>(least ? std::size(kModes) : 0);
  const auto at =
      std::find_if(half, points.end(), [&](const ModePoint& point) { return point.mode == mode; });
  TW_CHECK(at != points.end());
  return *at;
}

}  // namespace

Result<std::vector<ModePoint>> predict_modes(const Workload& workload, const std::vector<PeerGroup>& peers) {
  if (workload.pattern != Pattern::tradewind && workload.pattern != Pattern::tradewind_sites)
    return Error{fmt::format("pattern {} has no modes; expected tradewind or tradewind-sites",
                             to_string(workload.pattern))};
  std::vector<ModePoint> points;
  for (const OneMode& mode : kModes) {
    TW_TRY(auto point, point_of(mode, workload.target_batch_size, workload, peers));
    points.push_back(std::move(point));
  }
  for (std::size_t at = 0; at < std::size(kModes); ++at) {
    const double samples = least_samples(points[at], kModes[at].overlaps);
    TW_TRY(auto point, point_of(kModes[at], samples, workload, peers));
    points.push_back(std::move(point));
  }
  return points;
}

std::string mode_answer(const std::vector<ModePoint>& points) {
  const ModePoint& sync = found(points, "sync", false);
  const double granularity = sync.prediction.granularity.value;
  const std::string waits = fmt::format("sync would wait {:.0f} % of the time", 100 * sync.waits());
  if (granularity >= kOfSync) return waits + ": take it.";
  if (granularity >= kOfDelayed)
    return waits + fmt::format(": take delayed, which waits {:.0f} %.",
                               100 * std::max(0.0, found(points, "delayed", false).waits()));
  return waits + fmt::format(": take streaming with {:.0f} samples a round, which hides averaging.",
                             found(points, "streaming", true).round_samples);
}

std::string to_text(const std::vector<ModePoint>& points) {
  std::string text = fmt::format("{:<10} {:>15} {:>12} {:>12} {:>8} {:>10}\n", "mode", "samples a round",
                                 "computing s", "averaging s", "waiting", "samples/s");
  for (const ModePoint& point : points) {
    const Prediction& p = point.prediction;
    text += fmt::format("{:<10} {:>15.0f} {:>12} {:>12} {:>6.1f} % {:>10}\n", point.mode, point.round_samples,
                        significant(p.calc_s.value, 3), significant(p.comm_s.value, 3),
                        100 * std::max(0.0, point.waits()), significant(p.throughput_sps.value, 4));
  }
  text += "\n" + mode_answer(points) + "\nWhat modes cost in loss: docs/modes.md\n";
  for (const std::string& assumption : points.front().prediction.assumptions)
    text += "assumed: " + assumption + "\n";
  return text;
}

}  // namespace tw::plan
