// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "swarm/ballots/share_rules.h"

namespace tw::average {

/// Whether contributions are added site by site first.
enum class SiteUse : std::uint8_t {
  automatic,  ///< where that is faster, or as fast and sends less between sites
  flat,       ///< never
  tree,       ///< wherever there are two sites
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 3> kSiteUseNames = {"auto", "flat", "tree"};

constexpr std::span<const std::string_view> names_of(SiteUse) { return kSiteUseNames; }

/// Whether a plan with a tree of sites is better than the flat one for the same participants: faster by what
/// is known of their lines, or at most a little slower with less between sites.
/// `contribution`: how many times as long it is on the wire as a mean.
bool is_better(const wire::Plan& tree, const wire::Plan& flat,
               const std::vector<swarm::Participant>& participants, double contribution = 1);

/// How long the vector is on the wire.
struct WireBytes {
  std::uint64_t contribution = 0;
  std::uint64_t mean = 0;  ///< of a site or of all
};

/// The rules of shares.h and sites.h for such a vector.
swarm::ShareRules share_rules(const WireBytes& bytes, SiteUse use);

}  // namespace tw::average
