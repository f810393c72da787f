// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/plan_change.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::plan {
namespace {

bool is_about(const Change& change, const PlannedGroup& group) {
  return change.peers.site == group.site && change.peers.gpu == group.gpu &&
         change.purchase == group.purchase;
}

/// count 0: an alternative.
std::string group_text(const PlannedGroup& group, bool alternative) {
  return fmt::format("site: \"{}\", vm: \"{}\", gpu: \"{}\", {}purchase: {}, usd_per_h: {:.6g}, role: {}",
                     to_string(group.site), group.vm_type, group.gpu,
                     alternative ? "" : fmt::format("count: {}, ", group.count), to_string(group.purchase),
                     group.usd_per_h, group.anchor ? "anchor" : "peer");
}

}  // namespace

PlanFile changed(PlanFile plan, const Replan& replan) {
  for (const Change& change : replan.drop)
    for (PlannedGroup& group : plan.peers)
      if (is_about(change, group)) group.count -= std::min(group.count, change.peers.count);
  for (const Change& change : replan.add) {
    const auto known =
        std::ranges::find_if(plan.peers, [&](const PlannedGroup& group) { return is_about(change, group); });
    if (known != plan.peers.end()) {
      known->count += change.peers.count;
      known->usd_per_h = change.usd_per_h;
      continue;
    }
    plan.peers.push_back({.site = change.peers.site,
                          .gpu = change.peers.gpu,
                          .count = change.peers.count,
                          .purchase = change.purchase,
                          .usd_per_h = change.usd_per_h,
                          .anchor = change.purchase != market::Purchase::spot});
  }
  std::erase_if(plan.peers, [](const PlannedGroup& group) { return group.count == 0; });
  return plan;
}

std::string settings_text(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) text += fmt::format("  - \"{}\"\n", setting);
  return text.empty() ? "" : "settings:\n" + text;
}

std::string to_text(const PlanFile& plan) {
  std::string text = "# By `tw up --keep`.\n";
  if (!plan.run.empty()) text += fmt::format("run: \"{}\"\n", plan.run);
  if (!plan.job.empty()) text += fmt::format("job: \"{}\"\n", plan.job);
  text += settings_text(plan.settings) + "peers:\n";
  for (const PlannedGroup& group : plan.peers) {
    std::string others;
    for (const PlannedGroup& other : group.alternatives)
      others += fmt::format("{}{{{}}}", others.empty() ? "" : ",\n      ", group_text(other, true));
    text += fmt::format("  - {{{}{}}}\n", group_text(group, false),
                        others.empty() ? "" : ",\n     alternatives: [\n      " + others + "]");
  }
  return text;
}

}  // namespace tw::plan
