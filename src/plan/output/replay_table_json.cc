// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "plan/output/replay_table.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string to_json(const ReplayTable& table) {
  Json rows = Json::array();
  for (const ReplayRow& row : table.rows) {
    Json json{{"trace", row.trace}, {"starts", row.beginnings}, {"machines", row.machines}};
    json["usd"] = {{"on_demand", row.usd[0]},
                   {"greedy", row.usd[1]},
                   {"uniform", row.usd[2]},
                   {"forecast", row.usd[3]},
                   {"hindsight", row.least_usd}};
    json["late"] = row.late;
    rows.push_back(std::move(json));
  }
  return Json{{"traces", rows}, {"too_short", table.too_short}}.dump(2) + "\n";
}

}  // namespace tw::plan
