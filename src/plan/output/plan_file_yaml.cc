// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/text/fields.h"
#include "plan/advise/replan.h"

namespace tw::plan {
namespace {

constexpr int kMostInGroup = 10'000;
constexpr double kMostUsdPerHour = 1e6;

const std::string kPeerKeys[] = {"site",  "gpu",  "purchase",  "vm",
                                 "count", "role", "usd_per_h", "alternatives"};
/// Keys that `tw plan` writes; the reader needs the first four.
const std::string kPlanKeys[] = {"run", "job",     "settings", "peers",   "model",
                                 "tbs", "samples", "pattern",  "cluster", "anchors"};
/// Keys that `tw plan` of earlier versions wrote and nothing read. Runs of such plans are still kept.
const std::string kFormerPlanKeys[] = {"codec", "streams", "mode", "checkpoint_interval_s", "fallback"};

/// Reads machines; messages name the file and the node's line.
class GroupReader {
 public:
  explicit GroupReader(const std::string& file) : file_(file) {}

  Result<PlannedGroup> group_of(const YAML::Node& node) const {
    TW_TRY(const auto machine, machine_of(node));
    PlannedGroup group = machine;
    if (const std::string count = text_in(node, "count"); !count.empty()) {
      const std::optional<int> number = whole(count);
      if (!number)
        return wrong(node, fmt::format("count {}: expected a number from 1 to {}", count, kMostInGroup));
      group.count = *number;
    }
    if (node["alternatives"] && !node["alternatives"].IsSequence())
      return wrong(node, "alternatives: expected a list of machines");
    const std::string role = node["role"].as<std::string>(group.anchor ? "anchor" : "peer");
    if (role != "anchor" && role != "peer")
      return wrong(node, fmt::format("role {}: expected peer or anchor", role));
    group.anchor = role == "anchor";
    for (const YAML::Node& other : node["alternatives"]) {
      TW_TRY(const auto alternative, machine_of(other));
      group.alternatives.push_back(alternative);
    }
    return group;
  }

 private:
  static std::string text_in(const YAML::Node& node, const char* key) {
    return node[key] ? node[key].as<std::string>() : std::string();
  }

  static std::optional<int> whole(const std::string& text) {
    const auto number = number_in<int>(text, {1, kMostInGroup});
    return number;
  }

  /// The fault in the keys of a machine; empty: none.
  std::string fault_of(const YAML::Node& node) const {
    if (!node.IsMap()) return "expected a machine as {site: ..., gpu: ..., purchase: ...}";
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      if (std::ranges::find(kPeerKeys, key) == std::end(kPeerKeys))
        return fmt::format("{}: unknown key{}", key,
                           did_you_mean(key, std::span<const std::string>(kPeerKeys)));
    }
    for (const char* needed : {"site", "gpu", "purchase"}) {
      if (!node[needed]) return fmt::format("a machine without {}; expected site, gpu and purchase", needed);
    }
    return "";
  }

  Result<PlannedGroup> machine_of(const YAML::Node& node) const {
    if (const std::string fault = fault_of(node); !fault.empty()) return wrong(node, fault);
    const auto site = market::parse_site(node["site"].as<std::string>());
    if (!site) return wrong(node, site.error().message);
    const auto purchase = market::parse_purchase(node["purchase"].as<std::string>());
    if (!purchase) return wrong(node, "purchase: expected spot, on-demand or owned");
    const std::string price = text_in(node, "usd_per_h");
    if (!price.empty() && !number_in<double>(price, {0, kMostUsdPerHour}))
      return wrong(node,
                   fmt::format("usd_per_h {}: expected dollars from 0 to {:g}", price, kMostUsdPerHour));
    return PlannedGroup{.site = site.value(),
                        .vm_type = node["vm"].as<std::string>(""),
                        .gpu = node["gpu"].as<std::string>(),
                        .count = 1,
                        .purchase = *purchase,
                        .usd_per_h = node["usd_per_h"].as<double>(0),
                        .anchor = *purchase != market::Purchase::spot};
  }

  Error wrong(const YAML::Node& node, const std::string& what) const {
    return Error{fmt::format("{}:{}: {}", file_, node.Mark().line + 1, what)};
  }

  const std::string& file_;
};

}  // namespace

Result<PlanFile> read_plan(const std::string& file, std::string_view text) {
  PlanFile read;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      return Error{fmt::format("{}:{}: a second document (after ---); expected one PLAN.yaml", file,
                               std::max(documents[1].Mark().line, 0) + 1)};
    const YAML::Node plan = documents.empty() ? YAML::Node() : documents.front();
    if (!plan.IsMap() || !plan["peers"] || !plan["peers"].IsSequence() || plan["peers"].size() == 0)
      return Error{fmt::format("{}: no list of peers; expected a PLAN.yaml as `tw plan` writes it", file)};
    for (const auto& entry : plan) {
      const auto key = entry.first.as<std::string>();
      if (std::ranges::find(kFormerPlanKeys, key) != std::end(kFormerPlanKeys)) continue;
      if (std::ranges::find(kPlanKeys, key) == std::end(kPlanKeys))
        return Error{fmt::format("{}:{}: {}: unknown key{}", file, entry.first.Mark().line + 1, key,
                                 did_you_mean(key, std::span<const std::string>(kPlanKeys)))};
    }
    read.run = plan["run"].as<std::string>("");
    read.job = plan["job"].as<std::string>("");
    if (plan["settings"]) read.settings = plan["settings"].as<std::vector<std::string>>();
    for (const YAML::Node& node : plan["peers"]) {
      TW_TRY(auto group, GroupReader(file).group_of(node));
      read.peers.push_back(std::move(group));
    }
  } catch (const YAML::Exception& e) {
    return Error{
        fmt::format("{}:{}: {}; expected a PLAN.yaml as `tw plan` writes it", file, e.mark.line + 1, e.msg)};
  }
  return read;
}

Result<std::vector<PlannedGroup>> read_plan_file(const std::string& file, std::string_view text) {
  TW_TRY(auto plan, read_plan(file, text));
  return std::move(plan.peers);
}

}  // namespace tw::plan
