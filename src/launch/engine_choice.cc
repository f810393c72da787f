// SPDX-License-Identifier: Apache-2.0
#include "launch/engine_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text/split.h"
#include "launch/engines/engines.h"

namespace tw::launch {
namespace {

constexpr const char* kAnchor = "anchor";

/// gcp of gcp:us-west1, and gcp:us-west1 of gcp:us-west1:us-west1-b.
bool is_within(const std::string& site, const std::string& which) {
  return site == which || (site.starts_with(which) && site[which.size()] == ':');
}

bool names(const std::string& which, const Machine& machine, bool anchor) {
  if (which.empty()) return true;
  if (which == kAnchor) return anchor;
  if (const auto purchase = market::parse_purchase(which)) return machine.purchase == *purchase;
  return is_within(market::to_string(machine.site), which);
}

/// What a user may write for the machines of this plan.
std::string choices_in(const std::vector<plan::PlannedGroup>& plan) {
  std::set<std::string> kinds, providers;
  for (const plan::PlannedGroup& group : plan) {
    kinds.emplace(market::to_string(group.purchase));
    if (group.anchor) kinds.emplace(kAnchor);
    if (!group.site.provider.empty()) providers.insert(group.site.provider);
  }
  return fmt::format("{}", fmt::join(kinds, ", ")) +
         (providers.empty() ? "" : fmt::format(", {}", fmt::join(providers, ", ")));
}

}  // namespace

Machine machine_of(const plan::PlannedGroup& group) {
  return {group.site, group.vm_type, group.gpu, group.purchase, group.usd_per_h};
}

Result<EngineChoice> EngineChoice::parse(const std::vector<std::string>& texts) {
  EngineChoice choice;
  std::set<std::string> seen;
  for (const std::string& given : texts)
    for (const std::string& text : split(given, ',')) {
      const std::size_t equals = text.find('=');
      const bool for_all = equals == std::string::npos;
      Rule rule{for_all ? "" : text.substr(0, equals), for_all ? text : text.substr(equals + 1)};
      if (equals == 0 || rule.engine.empty())
        return Error{fmt::format("--on {}: expected ENGINE, or WHICH=ENGINE such as owned=ssh", text)};
      if (const auto engine = one_engine(rule.engine); !engine) return engine.error();
      if (!seen.insert(rule.which).second)
        return Error{fmt::format("--on {}: {} given a second time; expected one engine for {}", text,
                                 for_all ? "an engine for all machines is" : rule.which + " is",
                                 for_all ? "them" : "these machines")};
      choice.rules_.push_back(std::move(rule));
    }
  std::ranges::stable_partition(choice.rules_, [](const Rule& rule) { return !rule.which.empty(); });
  return choice;
}

std::string EngineChoice::text() const {
  std::vector<std::string> texts;
  for (const Rule& rule : rules_) texts.push_back(rule.which + (rule.which.empty() ? "" : "=") + rule.engine);
  return fmt::format("{}", fmt::join(texts, ","));
}

std::vector<std::string> EngineChoice::engines() const {
  std::vector<std::string> found;
  for (const Rule& rule : rules_)
    if (std::ranges::find(found, rule.engine) == found.end()) found.push_back(rule.engine);
  return found;
}

bool EngineChoice::has(std::string_view engine) const {
  return std::ranges::find(rules_, engine, &Rule::engine) != rules_.end();
}

const std::string& EngineChoice::engine_of(const PeerJob& peer) const {
  static const std::string kNone;
  const auto rule = std::ranges::find_if(
      rules_, [&](const Rule& one) { return names(one.which, peer.machine, peer.anchor); });
  return rule == rules_.end() ? kNone : rule->engine;
}

std::string EngineChoice::key_of(std::string_view engine, std::string_view key) const {
  return is_one() ? std::string(key) : fmt::format("{}.{}", engine, key);
}

Status EngineChoice::check(const std::vector<plan::PlannedGroup>& plan) const {
  const auto is_in_plan = [&](const Rule& rule) {
    return rule.which.empty() || std::ranges::any_of(plan, [&](const plan::PlannedGroup& group) {
             return names(rule.which, machine_of(group), group.anchor);
           });
  };
  for (const Rule& rule : rules_)
    if (!is_in_plan(rule))
      return Error{fmt::format("--on {}={}: no machine of the plan is {}; expected one of {}", rule.which,
                               rule.engine, rule.which, choices_in(plan))};
  return Unit{};
}

}  // namespace tw::launch
