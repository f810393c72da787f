// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "swarm/shares/participant.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Whether contributions are added site by site first.
enum class SiteUse : std::uint8_t {
  automatic,  ///< where that is faster, or as fast and sends less between sites
  flat,       ///< never
  tree,       ///< wherever there are two sites
};

/// In the order of the constants.
inline constexpr std::array<std::string_view, 3> kSiteUseNames = {"auto", "flat", "tree"};

constexpr std::span<const std::string_view> names_of(SiteUse) { return kSiteUseNames; }

/// Whether a plan with a tree of sites is better than the flat one for the same participants: faster by the
/// known bandwidths, or at most a little slower with less between sites. `contribution`: its length on the
/// wire, in means.
bool is_better(const wire::Plan& tree, const wire::Plan& flat, const std::vector<Participant>& participants,
               double contribution = 1);

/// Encoded length of the vector.
struct WireBytes {
  std::uint64_t contribution = 1;
  std::uint64_t mean = 1;  ///< of a site or of all
};

struct DivisionOptions {
  WireBytes bytes{};
  SiteUse sites = SiteUse::automatic;
};

/// Gives a plan without predecessor in its round shares of all segments and, where `options` say so, a tree
/// of sites. before: the shares of the last round, which stay when others would gain little.
void divide(wire::Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants,
            const std::vector<wire::Share>& before, const DivisionOptions& options);

/// Lower bound in seconds of averaging by this plan; 0 when no bandwidth is known.
double seconds_of(const wire::Plan& plan, const WireBytes& bytes,
                  const std::vector<Participant>& participants);

}  // namespace tw::swarm
