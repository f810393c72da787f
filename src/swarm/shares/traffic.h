// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/check.h"
#include "swarm/shares/participant.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Traffic between each two participants of a plan, in encoded means.
class PlanTraffic {
 public:
  /// Each contribution of the plan is one vector. `contribution`: its length on the wire, in means. A plan
  /// without shares sends nothing.
  PlanTraffic(const wire::Plan& plan, const std::vector<Participant>& participants, double contribution = 1);

  /// By their positions among the participants.
  double from_to(std::size_t i, std::size_t j) const {
    TW_CHECK(i < participants_.size() && j < participants_.size());
    return sent_[i * participants_.size() + j];
  }

  /// Between participants of different sites.
  double between_sites() const;

  /// Least time of this traffic for a mean of one byte, by bandwidth; 0 when none is known. Unknown
  /// bandwidths count as in fill_in_lines (bound.h).
  double seconds_per_byte() const;

 private:
  void add(PeerId from, PeerId to, double vectors);

  std::vector<Participant> participants_;
  std::map<PeerId, std::size_t> places_;
  std::vector<double> sent_;
};

}  // namespace tw::swarm
