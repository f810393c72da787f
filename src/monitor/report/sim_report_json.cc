// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/sim_report_json.h"

#include <nlohmann/json.hpp>

namespace tw::monitor {

std::string to_json(const SimResults& results) {
  using Json = nlohmann::ordered_json;
  Json failures = Json::array(), faults = Json::array(), rare = Json::array(), kills = Json::object();
  for (const SimFailure& failure : results.failures) {
    failures.push_back({{"seed", failure.seed}, {"checker", failure.checker}, {"message", failure.message}});
  }
  for (const SimFault& fault : results.faults) {
    faults.push_back({{"name", fault.name}, {"drawn", fault.drawn}, {"fired", fault.fired}});
  }
  for (const auto& [name, taken] : results.rare) rare.push_back({{"name", name}, {"taken", taken}});
  for (const auto& [phase, count] : results.kills_by_phase) kills[phase] = count;

  Json json;
  json["seeds"] = results.seeds;
  json["failures"] = std::move(failures);
  json["events"] = results.events;
  json["events_per_s"] = results.events_per_s;
  json["simulated_s"] = results.simulated_s;
  json["faults"] = std::move(faults);
  json["rare"] = std::move(rare);
  json["kills_by_phase"] = std::move(kills);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tw::monitor
