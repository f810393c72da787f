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

/// Rules that divide the vector among the reducers (average/ provides them).
struct ShareRules {
  /// The shares of a plan. The shares of the previous plan stay when others would gain little.
  std::function<std::vector<wire::Share>(std::uint64_t segments, const std::vector<Participant>& participants,
                                         const std::vector<wire::Share>& before)>
      cut;
  /// Divides these segments anew among the participants that may reduce; the other segments stay.
  std::function<std::vector<wire::Share>(const std::vector<wire::Share>& before, const RangeSet& segments,
                                         const std::vector<Participant>& participants)>
      move;
  /// Lower bound in seconds of averaging by this plan; 0 when no bandwidth is known.
  std::function<double(const wire::Plan& plan, const std::vector<Participant>& participants)> seconds;
  /// Gives a plan with shares a tree of sites, and its contributions their groups, where that is better.
  std::function<void(wire::Plan& plan, const std::vector<Participant>& participants)> plant;
  /// Takes shares, sites and groups from the previous plan, which has sites, except what belonged to peers
  /// that are gone or may reduce no more.
  std::function<void(wire::Plan& plan, const wire::Plan& before,
                     const std::vector<Participant>& participants)>
      follow;
  /// Participants came or went; shares and groups stay: in each site some peer passes the mean on. A plan
  /// without sites, or a malformed one, stays as it is.
  std::function<void(wire::Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants)>
      mend;
};

}  // namespace tw::swarm
