// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "plan/output/prediction_json.h"
#include "plan/output/prediction_sweep.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string to_json(const Workload& workload, const std::vector<SweepPoint>& points) {
  Json rows = Json::array();
  for (const SweepPoint& point : points) {
    Json row{{"peers", count_of(point.peers)}, {"cluster", to_string(point.peers)}};
    row.update(Json::parse(to_json(point.prediction, point.cost)));
    rows.push_back(std::move(row));
  }
  const Json json{{"points", std::move(rows)}, {"answers", answers_of(workload, points)}};
  return json.dump(2) + "\n";
}

}  // namespace tw::plan
