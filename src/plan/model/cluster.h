// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "market/site.h"

/// Which machines take part in a run.
namespace tw::plan {

/// Peers of one kind at one site. A GPU name of several (DGX2-8xV100) is one peer with all of them.
struct PeerGroup {
  int count = 0;
  std::string gpu;
  market::Site site;

  auto operator<=>(const PeerGroup&) const = default;
};

/// `4xT4@gc:us;2xA10@lambda:us-west`, with spaces around the groups if wanted, and known GPUs in any case. An
/// error names the part that is wrong.
Result<std::vector<PeerGroup>> parse_peers(const std::string& list);
std::string to_string(const std::vector<PeerGroup>& groups);

int count_of(const std::vector<PeerGroup>& groups);

/// Where the network tables have the group: an on-premise host may be a site of its own.
market::Site network_site(const PeerGroup& group);

bool on_premise(const market::Site& site);

}  // namespace tw::plan
