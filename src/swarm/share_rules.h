// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "wire/line.h"
#include "wire/messages.h"

namespace tw {

/// One participant of an averaging: whoever gets the mean.
struct Hand {
  PeerId peer;
  bool owns = true;                 ///< may reduce a share
  std::uint32_t contributions = 1;  ///< vectors that it sends
  Line line{};
};

/// How the vector is divided among those who reduce it (average/ provides it).
struct ShareRules {
  /// The shares of a plan. Those of the plan before stay when others would gain little.
  std::function<std::vector<Share>(std::uint64_t segments, const std::vector<Hand>& hands,
                                   const std::vector<Share>& before)>
      cut;
  /// These segments are cut anew among those who may own them; the others stay.
  std::function<std::vector<Share>(const std::vector<Share>& before, const RangeSet& segments,
                                   const std::vector<Hand>& hands)>
      move;
  /// What averaging with these shares takes at least; 0 when nobody's line is known.
  std::function<double(const std::vector<Share>& shares, const std::vector<Hand>& hands)> seconds;
};

}  // namespace tw
