// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "sim/scenarios/what_if.h"

namespace tw::sim {
namespace {

/// What the cost leaves out; empty where nothing or everything is priced.
std::string unpriced_anchors(const WhatIf& what, const WhatIfReport& report) {
  if (what.anchors == 0 || what.anchor_usd_per_h > 0 || report.usd == 0) return "";
  return fmt::format("; {} for {:.1f} h without a price (--anchor-usd-per-h)",
                     what.anchors == 1 ? "1 anchor" : fmt::format("{} anchors", what.anchors),
                     to_seconds(report.simulated) / 3600);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::string to_string(const WhatIf& what, const WhatIfReport& report) {
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<28}{}\n", name, value);
  };
  row("simulated",
      fmt::format("{:.2f} h of {:.2f} h, {} machines, {} anchors", to_seconds(report.simulated) / 3600,
                  to_seconds(what.length) / 3600, report.machines, what.anchors));
  if (const auto& policy = what.policy) {
    row("policy",
        fmt::format("{}: {} interruptions, {} starts of spot machines, {:.1f} h on demand; deadline after "
                    "{:g} h",
                    policy->name, policy->interruptions, policy->starts, report.on_demand_hours,
                    policy->deadline_h));
    row("  trained", fmt::format("{} of the {:.0f} samples that it counted on after {:.2f} h",
                                 percent(static_cast<double>(report.samples) / report.planned_samples),
                                 report.planned_samples, policy->finished_h));
  }
  row("goodput", percent(report.goodput) + " of what the live machines could compute");
  row("  lost to joining", percent(report.lost.joining));
  row("  lost to averaging", percent(report.lost.averaging));
  row("  lost to computing again", percent(report.lost.recomputed));
  row("  lost after leaving", percent(report.lost.leaving));
  row("  lost to waiting", percent(report.lost.waiting));
  row("samples",
      fmt::format("{}, {:.1f}/s", report.samples,
                  static_cast<double>(report.samples) / std::max(1.0, to_seconds(report.simulated))));
  row("samples computed again", fmt::format("{:.0f}", report.recomputed_samples));
  row("rounds", fmt::format("{}, {:.1f} s each (median)", report.rounds, report.round_s));
  row("rounds lost", std::to_string(report.rounds_lost));
  row("members that vanished", std::to_string(report.losses));
  row("members that left in time", std::to_string(report.leaves));
  row("time to recover",
      fmt::format("{:.1f} s median, {:.1f} s worst", report.recover_s_median, report.recover_s_worst));
  row("members", fmt::format("{:.1f} on average, {} to {}", report.members_mean, report.members_least,
                             report.members_most));
  row("sent", fmt::format("{:.2f} GB", report.sent_gb));
  const std::string on_demand =
      what.policy ? fmt::format(", {:.1f} on demand", report.on_demand_hours) : std::string();
  row("cost", fmt::format("{:.2f} USD, {:.3f} USD for a million samples ({:.1f} spot machine hours{}{})",
                          report.usd, report.usd_per_million_samples, report.machine_hours, on_demand,
                          unpriced_anchors(what, report)));
  if (report.simulated < what.length) text += "everybody was gone: the run ended there; an anchor keeps it\n";
  for (const std::string& violation : report.violations) text += "violated: " + violation + "\n";
  return text;
}

}  // namespace tw::sim
