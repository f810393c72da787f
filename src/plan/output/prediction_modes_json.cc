// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "plan/output/prediction_modes.h"

namespace tw::plan {

std::string to_json(const std::vector<ModePoint>& points) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ModePoint& point : points) {
    const Prediction& p = point.prediction;
    rows.push_back({{"mode", point.mode},
                    {"round_samples", point.round_samples},
                    {"calc_s", p.calc_s.value},
                    {"comm_s", p.comm_s.value},
                    {"hidden_s", p.overlap_s},
                    {"waits", point.waits()},
                    {"throughput_sps", p.throughput_sps.value}});
  }
  const nlohmann::ordered_json json{{"modes", std::move(rows)}, {"answer", mode_answer(points)}};
  return json.dump(2) + "\n";
}

}  // namespace tw::plan
