// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_modes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"
#include "base/text/quantity.h"

namespace tw::plan {
namespace {

constexpr const char* kTableModes[] = {"sync", "delayed", "local", "streaming"};

}  // namespace

Result<std::vector<ModePoint>> predict_modes(const NamedWork& work, const Workload& workload,
                                             const std::vector<PeerGroup>& peers,
                                             const Knowledge& knowledge) {
  if (!has_modes(workload.pattern))
    return Error{fmt::format("pattern {} has no modes; expected tradewind or tradewind-sites",
                             to_string(workload.pattern))};
  std::vector<ModePoint> points;
  for (const bool enlarged : {false, true}) {
    for (const char* mode : kTableModes) {
      TW_TRY(auto point, predict_mode({work, workload, peers, knowledge}, mode, enlarged));
      points.push_back(std::move(point));
    }
  }
  return points;
}

std::string mode_answer(const std::vector<ModePoint>& points) {
  std::vector<ModePoint> choices;
  for (const ModePoint& point : points)
    if (point.mode != "local" && (!point.is_enlarged || point.mode == "streaming")) choices.push_back(point);
  return reason_of(cheapest_of(std::move(choices)));
}

std::string to_text(const std::vector<ModePoint>& points) {
  std::string text = fmt::format("{:<10} {:>15} {:>12} {:>12} {:>8} {:>10}\n", "mode", "samples a round",
                                 "computing s", "averaging s", "waiting", "samples/s");
  for (const ModePoint& point : points) {
    const Prediction& p = point.prediction;
    text += fmt::format("{:<10} {:>15.0f} {:>12} {:>12} {:>6.1f} % {:>10}\n", point.mode, point.round_samples,
                        significant(p.calc_s.value, 3), significant(p.comm_s.value, 3), 100 * point.waits(),
                        significant(p.throughput_sps.value, 4));
  }
  text += "\n" + mode_answer(points) + "\nWhat modes cost in loss: docs/modes.md\n";
  for (const std::string& assumption : points.front().prediction.assumptions)
    text += "assumed: " + assumption + "\n";
  return text;
}

}  // namespace tw::plan
