// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "plan/output/replay_table.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<PolicyResult>& policies) {
  Json list = Json::array();
  for (const PolicyResult& one : policies)
    list.push_back({{"name", one.name},
                    {"cost_usd", one.usd},
                    {"makespan_h", one.makespan_h},
                    {"spot_h", one.spot_h},
                    {"interruptions", one.interruptions},
                    {"moves", one.moves},
                    {"late", one.late},
                    {"over_optimum",
                     {{"mean", one.over.mean},
                      {"median", one.over.median},
                      {"p90", one.over.p90},
                      {"worst", one.over.worst}}}});
  return list;
}

}  // namespace

std::string to_json(const ReplayTable& table) {
  Json rows = Json::array();
  for (const ReplayRow& row : table.rows)
    rows.push_back({{"trace", row.trace},
                    {"zones", row.zones},
                    {"starts", row.starts},
                    {"machines", row.machines},
                    {"optimum_usd", row.least_usd},
                    {"policies", json_of(row.policies)}});
  return Json{{"policies", json_of(table.policies)}, {"traces", rows}, {"too_short", table.too_short}}.dump(
             2) +
         "\n";
}

}  // namespace tw::plan
