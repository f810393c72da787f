// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/what_if_json.h"

#include <nlohmann/json.hpp>

namespace tw::sim {

std::string to_json(const WhatIf& what, const WhatIfReport& report) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["simulated_h"] = to_seconds(report.simulated) / 3600;
  json["asked_h"] = to_seconds(what.length) / 3600;
  json["anchors"] = what.anchors;
  json["machines"] = report.machines;
  if (const auto& policy = what.policy)
    json["policy"] = {{"name", policy->name},
                      {"planned_samples", report.planned_samples},
                      {"finished_h", policy->finished_h},
                      {"deadline_h", policy->deadline_h},
                      {"interruptions", policy->interruptions},
                      {"starts", policy->starts},
                      {"on_demand_machine_hours", report.on_demand_hours}};
  json["goodput"] = report.goodput;
  json["lost"] = {{"joining", report.lost.joining},
                  {"averaging", report.lost.averaging},
                  {"recomputed", report.lost.recomputed},
                  {"leaving", report.lost.leaving},
                  {"waiting", report.lost.waiting}};
  json["samples"] = report.samples;
  json["capacity_samples"] = report.capacity_samples;
  json["recomputed_samples"] = report.recomputed_samples;
  json["rounds"] = report.rounds;
  json["round_s"] = report.round_s;
  json["rounds_lost"] = report.rounds_lost;
  json["losses"] = report.losses;
  json["leaves"] = report.leaves;
  json["recover_s"] = {{"median", report.recover_s_median}, {"worst", report.recover_s_worst}};
  json["members"] = {
      {"mean", report.members_mean}, {"least", report.members_least}, {"most", report.members_most}};
  json["strength"] = Json::array();
  for (const WhatIfReport::Strength& at : report.strength) {
    json["strength"].push_back({{"at_s", at.at_s}, {"machines", at.machines}, {"members", at.members}});
  }
  json["spot_machine_hours"] = report.machine_hours;
  json["sent_gb"] = report.sent_gb;
  json["anchor_usd_per_h"] = what.anchor_usd_per_h;
  json["usd"] = report.usd;
  json["usd_per_million_samples"] = report.usd_per_million_samples;
  json["violations"] = report.violations;
  json["events"] = report.events;
  return json.dump(2) + "\n";
}

std::string page_fields(const WhatIf& what, const WhatIfReport& report, const std::string& machines) {
  return "\"machines\":" + nlohmann::json(machines).dump() + ",\"seed\":" + std::to_string(what.seed) +
         ",\"report\":" + to_json(what, report);
}

}  // namespace tw::sim
