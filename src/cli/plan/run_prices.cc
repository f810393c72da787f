// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/run_prices.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "base/peer_name.h"
#include "base/result.h"
#include "base/text/text_file.h"
#include "launch/engines/host_script.h"

namespace tw::cli {
namespace {

/// A price of 0 means not known, except for an owned machine.
std::optional<double> price_of(market::Purchase purchase, double usd_per_h) {
  const bool said = usd_per_h > 0 || (usd_per_h == 0 && purchase == market::Purchase::owned);
  return said && std::isfinite(usd_per_h) ? std::optional(usd_per_h) : std::nullopt;
}

std::optional<double> price_of(const launch::Machine& machine) {
  return price_of(machine.purchase, machine.usd_per_h);
}

PeerPrices same_for_all(const std::vector<PeerId>& peers, double usd_per_h) {
  PeerPrices prices;
  for (const PeerId peer : peers) prices[peer] = usd_per_h;
  return prices;
}

/// Whether ids in the run identify the starts of peers.
bool ids_tell(const std::string& engine) { return engine == "ssh" || engine == "slurm" || engine == "local"; }

std::optional<std::string> state_file_near(const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path logs = fs::absolute(folder + "/.").lexically_normal().parent_path();
  for (const fs::path& place : {logs, logs.parent_path()}) {
    std::error_code error;
    if (fs::is_regular_file(place / "state.json", error)) return (place / "state.json").string();
  }
  return std::nullopt;
}

}  // namespace

PeerPrices prices_by_state(const launch::RunState& state, const std::vector<PeerId>& peers) {
  std::map<std::uint64_t, double> by_number;
  std::set<std::optional<double>> all;
  for (const launch::PeerJob& peer : state.deployment.peers) {
    const std::optional<double> price = price_of(peer.machine);
    if (price) by_number[peer.number] = *price;
    all.insert(price);
    for (const launch::Machine& other : peer.alternatives) all.insert(price_of(other));
  }
  PeerPrices prices;
  if (!ids_tell(state.engine)) {
    const bool one = all.size() == 1 && *all.begin();
    return one ? same_for_all(peers, **all.begin()) : prices;
  }
  for (const PeerId peer : peers) {
    const auto found = by_number.find(peer.value / kIdsOfMachine);
    if (found != by_number.end()) prices[peer] = found->second;
  }
  return prices;
}

Result<PeerPrices> prices_by_plan(const std::string& file, const std::vector<plan::PlannedGroup>& plan,
                                  const std::vector<PeerId>& peers) {
  std::set<double> all;
  for (const plan::PlannedGroup& group : plan) {
    if (!plan::trains(group)) continue;
    const std::optional<double> price = price_of(group.purchase, group.usd_per_h);
    if (!price)
      return Error{fmt::format("--plan {}: {} at {} has no usd_per_h; expected a price for each machine",
                               file, group.gpu, market::to_string(group.site))};
    all.insert(*price);
  }
  if (all.size() == 1) return same_for_all(peers, *all.begin());
  return Error{
      fmt::format("--plan {}: its machines have {} prices, and logs do not say which peer had which; "
                  "expected one price, or the logs that tw up keeps, without --plan",
                  file, all.size())};
}

Result<PeerPrices> prices_for(const std::string& folder, const std::string& plan_file,
                              const std::vector<PeerId>& peers) {
  if (!plan_file.empty()) {
    TW_TRY(const auto text, read_text_file(plan_file, kMostYamlBytes));
    TW_TRY(const auto plan, plan::read_plan_file(plan_file, text));
    return prices_by_plan(plan_file, plan, peers);
  }
  const auto file = state_file_near(folder);
  if (!file) return PeerPrices{};
  TW_TRY(const auto text, read_text_file(*file));
  if (text.find("\"tradewind_run\"") == std::string::npos) return PeerPrices{};  // somebody else's
  TW_TRY(const auto state, launch::run_state_in(*file, text));
  return prices_by_state(state, peers);
}

}  // namespace tw::cli
