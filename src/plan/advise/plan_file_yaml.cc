// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "plan/advise/replan.h"

namespace tw::plan {
namespace {

Result<PlannedGroup> group_of(const std::string& file, const YAML::Node& node) {
  const auto wrong = [&](const std::string& what) {
    return Error{fmt::format("{}:{}: {}", file, node.Mark().line + 1, what)};
  };
  const auto site = market::parse_site(node["site"].as<std::string>());
  if (!site) return wrong(site.error().message);
  const auto purchase = market::parse_purchase(node["purchase"].as<std::string>());
  if (!purchase) return wrong("purchase: expected spot, on-demand or owned");
  PlannedGroup group{.site = site.value(),
                     .vm_type = node["vm"].as<std::string>(""),
                     .gpu = node["gpu"].as<std::string>(),
                     .count = node["count"].as<int>(),
                     .purchase = *purchase,
                     .usd_per_h = node["usd_per_h"].as<double>(0)};
  if (group.count < 1) return wrong("count: expected a number from 1");
  return group;
}

}  // namespace

Result<std::vector<PlannedGroup>> read_plan_file(const std::string& file, std::string_view text) {
  std::vector<PlannedGroup> groups;
  try {
    const YAML::Node plan = YAML::Load(std::string(text));
    if (!plan.IsMap() || !plan["peers"] || !plan["peers"].IsSequence() || plan["peers"].size() == 0)
      return Error{fmt::format("{}: no list of peers; expected a PLAN.yaml as `tw plan` writes it", file)};
    for (const YAML::Node& node : plan["peers"]) {
      auto group = group_of(file, node);
      if (!group) return group.error();
      groups.push_back(std::move(group).value());
    }
  } catch (const YAML::Exception& e) {
    return Error{
        fmt::format("{}:{}: {}; expected a PLAN.yaml as `tw plan` writes it", file, e.mark.line + 1, e.msg)};
  }
  return groups;
}

}  // namespace tw::plan
