// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/check.h"
#include "swarm/ballots/share_rules.h"
#include "wire/messages.h"

namespace tw::average {

/// What each participant of a plan sends to each other one, in encoded means.
class PlanTraffic {
 public:
  /// Each contribution of the plan is one vector of a participant, so many times as long
  /// on the wire as a mean. A plan without shares has none.
  PlanTraffic(const wire::Plan& plan, const std::vector<swarm::Participant>& participants,
              double contribution = 1);

  /// By their places among the participants.
  double from_to(std::size_t i, std::size_t j) const {
    TW_CHECK(i < participants_.size() && j < participants_.size());
    return sent_[i * participants_.size() + j];
  }

  /// Between participants of different sites.
  double between_sites() const;

  /// The time in which lines carry a mean of one byte; 0 when none is known. Unknown lines count as in
  /// fill_in_lines (bound.h).
  double seconds_per_byte() const;

 private:
  void add(PeerId from, PeerId to, double vectors);

  std::vector<swarm::Participant> participants_;
  std::map<PeerId, std::size_t> places_;
  std::vector<double> sent_;
};

}  // namespace tw::average
