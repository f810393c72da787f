// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/share_rules.h"

namespace tw {

/// Whether contributions are added site by site first.
enum class SiteUse : std::uint8_t {
  automatic,  ///< where that is faster, or as fast and sends less between sites
  flat,       ///< never
  tree,       ///< wherever there are two sites
};

/// Whether a plan with a tree of sites is better than the flat one for the same participants: faster by what
/// is known of their lines, or at most a little slower with less between sites.
bool is_better(const Plan& tree, const Plan& flat, const std::vector<Hand>& hands);

/// The rules of shares.h and sites.h for a vector that crosses the wire in so many bytes.
ShareRules share_rules(std::uint64_t bytes, SiteUse use);

}  // namespace tw
