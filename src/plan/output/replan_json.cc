// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "plan/advise/replan.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

Json changes_json(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& one : changes)
    list.push_back({{"count", one.peers.count},
                    {"gpu", one.peers.gpu},
                    {"site", to_string(one.peers.site)},
                    {"purchase", to_string(one.purchase)},
                    {"usd_per_h", one.usd_per_h}});
  return list;
}

Json chosen_json(const Option& option) {
  return {{"peers", to_string(option.peers)},
          {"throughput_sps", option.samples_per_s},
          {"hours", option.hours},
          {"usd", option.usd},
          {"hours_p90", option.hours_spread.p90},
          {"usd_p90", option.usd_spread.p90}};
}

}  // namespace

std::string to_json(const Replan& replan) {
  const RunProgress& at = replan.progress;
  Json json{{"advice", to_string(replan.advice)},
            {"reason", replan.reason},
            {"samples", at.samples},
            {"samples_left", replan.samples_left},
            {"elapsed_h", at.elapsed_h},
            {"measured_sps", at.measured.samples_per_s},
            {"measured_peers", at.measured.peers},
            {"speed_factor", replan.speed_factor},
            {"peers", at.peers},
            {"missing", replan.missing},
            {"losses", at.losses},
            {"usd_spent", replan.usd_spent},
            {"usd_estimated", replan.usd_estimated},
            {"add", changes_json(replan.add)},
            {"drop", changes_json(replan.drop)},
            {"switch_usd", replan.switch_usd},
            {"switch_state_usd", replan.switch_state_usd},
            {"switch_h", replan.switch_h},
            {"prices", replan.prices}};
  if (replan.hours_left > 0) {
    json["hours_left"] = replan.hours_left;
    json["to_spare_h"] = replan.to_spare_h;
  }
  if (replan.policy)
    json["policy"] = {{"action", to_string(replan.policy->action)}, {"reason", replan.policy->reason}};
  json["avoided"] = replan.avoided;
  if (replan.advice != Advice::done) {
    json["current"] = chosen_json(replan.current);
    json["proposed"] = chosen_json(replan.proposed);
  }
  return json.dump(2) + "\n";
}

}  // namespace tw::plan
