// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "launch/run_store.h"
#include "plan/advise/replan.h"

/// What an hour of each peer costs: USD, no less than 0. Where nothing says so, a peer is left out.
namespace tw::cli {

using PeerPrices = std::map<PeerId, double>;

/// By the machine that `tw up` gave each peer last. With ssh, Slurm and local an id identifies the peer's
/// start; with other engines, prices are known only if all machines have the same price, alternatives
/// included.
PeerPrices prices_by_state(const launch::RunState& state, const std::vector<PeerId>& peers);

/// Logs do not say which machine of a plan a peer had, so all must have one price. The error names the file.
Result<PeerPrices> prices_by_plan(const std::string& file, const std::vector<plan::PlannedGroup>& plan,
                                  const std::vector<PeerId>& peers);

/// By PLAN.yaml where plan_file is not empty, else by the state that `tw up` keeps in this folder or the one
/// above. Nothing where there is none. Errors: a file that cannot be read or used.
Result<PeerPrices> prices_for(const std::string& folder, const std::string& plan_file,
                              const std::vector<PeerId>& peers);

}  // namespace tw::cli
