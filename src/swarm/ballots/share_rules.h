// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wire/bandwidth.h"
#include "wire/messages.h"

namespace tw::swarm {

/// One participant of an averaging: a peer that gets the mean.
struct Participant {
  PeerId peer;
  bool owns = true;                 ///< may reduce a share
  std::uint32_t contributions = 1;  ///< vectors that it sends
  wire::Bandwidth bandwidth{};
  std::string site{};  ///< empty: one of its own
};

/// How the vector is divided among those who reduce it (average/ provides it).
struct ShareRules {
  /// The shares of a plan. Those of the plan before stay when others would gain little.
  std::function<std::vector<wire::Share>(std::uint64_t segments, const std::vector<Participant>& participants,
                                         const std::vector<wire::Share>& before)>
      cut;
  /// These segments are cut anew among those who may own them; the others stay.
  std::function<std::vector<wire::Share>(const std::vector<wire::Share>& before, const RangeSet& segments,
                                         const std::vector<Participant>& participants)>
      move;
  /// What averaging by this plan takes at least; 0 when nobody's line is known.
  std::function<double(const wire::Plan& plan, const std::vector<Participant>& participants)> seconds;
  /// A plan with shares gets a tree of sites, and its contributions their groups, where that is better.
  std::function<void(wire::Plan& plan, const std::vector<Participant>& participants)> plant;
  /// Shares, sites and groups as in the plan before, which has sites, but for what belonged to peers that are
  /// gone or own no more.
  std::function<void(wire::Plan& plan, const wire::Plan& before,
                     const std::vector<Participant>& participants)>
      follow;
  /// Participants came or went; shares and groups stay: in each site somebody passes the mean on. Nothing for
  /// a plan without sites, or a malformed one.
  std::function<void(wire::Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants)>
      mend;
};

}  // namespace tw::swarm
