// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/text/field_table.h"
#include "base/text/tree_yaml.h"
#include "market/gpu_name.h"
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

bool is_one_of(std::span<const std::string> keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

/// Messages name the file and the line of the machine or key.
class PlanReader {
 public:
  explicit PlanReader(const std::string& file) : file_(file) {}

  Result<PlanFile> read(const Tree& plan) const {
    const Tree* peers = plan.find("peers");
    if (plan.is_map() && (peers != nullptr || has_misspelt_peers(plan)))
      TW_TRY(check_keys(plan, kPlanKeys, kFormerPlanKeys));
    if (!plan.is_map() || peers == nullptr || !peers->is_list() || peers->items.empty())
      return Error{
          fmt::format("{}: no list of peers; expected a PLAN.yaml as `tw plan JOB.yaml` writes it", file_)};
    PlanFile read;
    TW_TRY(read.run, word_in(plan, "run"));
    TW_TRY(read.job, word_in(plan, "job"));
    TW_TRY(read.settings, settings_in(plan));
    for (const Tree& node : peers->items) {
      TW_TRY(auto group, group_of(node));
      read.peers.push_back(std::move(group));
    }
    return read;
  }

 private:
  Result<PlannedGroup> group_of(const Tree& node) const {
    TW_TRY(auto group, machine_of(node));
    TW_TRY(const auto count, word_in(node, "count"));
    if (!count.empty()) {
      const auto number = number_in<int>(count, {1, kMostInGroup});
      if (!number)
        return wrong(node,
                     fmt::format("count {}: expected a whole number from 1 to {}", count, kMostInGroup));
      group.count = *number;
    }
    TW_TRY(const auto role, word_in(node, "role"));
    if (!role.empty() && role != "anchor" && role != "peer")
      return wrong(node, fmt::format("role {}: expected peer or anchor", role));
    if (!role.empty()) group.anchor = role == "anchor";
    const Tree* alternatives = node.find("alternatives");
    if (alternatives == nullptr) return group;
    if (!alternatives->is_list()) return wrong(node, "alternatives: expected a list of machines");
    for (const Tree& other : alternatives->items) {
      TW_TRY(auto alternative, machine_of(other));
      group.alternatives.push_back(std::move(alternative));
    }
    return group;
  }

  Result<PlannedGroup> machine_of(const Tree& node) const {
    if (!node.is_map()) return wrong(node, "expected a machine as {site: ..., gpu: ..., purchase: ...}");
    TW_TRY(check_keys(node, kPeerKeys, {}));
    for (const char* needed : {"site", "gpu", "purchase"}) {
      if (node.find(needed) == nullptr)
        return wrong(node, fmt::format("a machine without {}; expected site, gpu and purchase", needed));
    }
    PlannedGroup machine{.count = 1};
    TW_TRY(const auto site, word_in(node, "site"));
    const auto known = market::parse_site(site);
    if (!known) return wrong(node, known.error().message);
    machine.site = known.value();
    TW_TRY(const auto purchase, word_in(node, "purchase"));
    const auto bought = market::parse_purchase(purchase);
    if (!bought) return wrong(node, fmt::format("purchase {}: expected spot, on-demand or owned", purchase));
    machine.purchase = *bought;
    machine.anchor = *bought != market::Purchase::spot;
    TW_TRY(const auto price, word_in(node, "usd_per_h"));
    const auto usd_per_h = number_in<double>(price, {0, kMostUsdPerHour});
    if (!price.empty() && !usd_per_h)
      return wrong(node,
                   fmt::format("usd_per_h {}: expected dollars from 0 to {:g}", price, kMostUsdPerHour));
    machine.usd_per_h = usd_per_h.value_or(0);
    TW_TRY(machine.vm_type, word_in(node, "vm"));
    TW_TRY(const auto gpu, word_in(node, "gpu"));
    machine.gpu = market::gpu_name(gpu);
    return machine;
  }

  Result<std::vector<std::string>> settings_in(const Tree& plan) const {
    std::vector<std::string> settings;
    const Tree* given = plan.find("settings");
    if (given == nullptr || given->kind == Tree::Kind::nothing) return settings;
    for (const Tree& one : given->items) settings.push_back(one.word);
    if (given->is_list() && std::ranges::all_of(given->items, &Tree::is_word)) return settings;
    return wrong(*given, "settings: expected a list such as [training.codec=fp16]");
  }

  /// Empty: not given.
  Result<std::string> word_in(const Tree& map, const char* key) const {
    const Tree* value = map.find(key);
    if (value == nullptr || value->kind == Tree::Kind::nothing) return std::string();
    if (!value->is_word()) return wrong(*value, fmt::format("{}: expected one value", key));
    return value->word;
  }

  /// A run or job file has nothing like it.
  static bool has_misspelt_peers(const Tree& plan) {
    constexpr std::string_view kPeers[] = {"peers"};
    return std::ranges::any_of(plan.items,
                               [&](const Tree& item) { return !did_you_mean(item.key, kPeers).empty(); });
  }

  /// Each key is known and given once. former: keys that nobody needs to know of.
  Status check_keys(const Tree& map, std::span<const std::string> known,
                    std::span<const std::string> former) const {
    Complaints faults(file_);
    faults.for_each_key(map, faults.place(map), "", [&](const Tree& value, const std::string& where) {
      if (!is_one_of(known, value.key) && !is_one_of(former, value.key))
        faults.add(where, "unknown key" + did_you_mean(value.key, known));
    });
    return faults.empty() ? Status(Unit{}) : Status(faults.error());
  }

  Error wrong(const Tree& node, const std::string& what) const {
    return Error{fmt::format("{}:{}: {}", file_, node.line, what)};
  }

  const std::string& file_;
};

}  // namespace

Result<PlanFile> read_plan(const std::string& file, std::string_view text) {
  TW_TRY(const auto plan, parse_yaml(file, text));
  return PlanReader(file).read(plan);
}

Result<std::vector<PlannedGroup>> read_plan_file(const std::string& file, std::string_view text) {
  TW_TRY(auto plan, read_plan(file, text));
  return std::move(plan.peers);
}

}  // namespace tw::plan
