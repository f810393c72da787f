// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "market/offer.h"

/// The machines of a run.
namespace tw::plan {

/// Peers of one kind at one site. With a GPU name such as DGX2-8xV100, one peer has all of these GPUs.
struct PeerGroup {
  int count = 0;
  std::string gpu;
  market::Site site;
  std::optional<market::Purchase> purchase{};  ///< how they are paid for; nothing: not said
  double gpu_memory_gib = 0;                   ///< of one GPU; 0: by its data sheet

  auto operator<=>(const PeerGroup&) const = default;
};

/// `4xT4@gc:us;2xA10@lambda:us-west on-demand`; groups may have spaces around them, and GPUs any name that
/// market::gpu_name() knows. An error names the part that is wrong.
Result<std::vector<PeerGroup>> parse_peers(const std::string& list);
std::string to_string(const std::vector<PeerGroup>& groups);

int count_of(const std::vector<PeerGroup>& groups);

/// The group's site in the network tables: an on-premise host may be a site of its own.
market::Site network_site(const PeerGroup& group);

bool on_premise(const market::Site& site);

}  // namespace tw::plan
