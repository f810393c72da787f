// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/barred.h"

#include <algorithm>

namespace tw::swarm {

void Barred::supersede(const wire::Member& former) {
  const std::pair process{former.peer, former.incarnation};
  if (std::ranges::find(superseded_, process) != superseded_.end()) return;
  superseded_.push_back(process);
  if (superseded_.size() > kMostSuperseded) superseded_.pop_front();
}

void Barred::turn_away(Instant now, Instant until, const wire::Member& squatter) {
  std::erase_if(turned_away_, [&](const auto& entry) { return now >= entry.second.until; });
  turned_away_[squatter.peer] = {squatter.incarnation, until};
}

bool Barred::bars(Instant now, const wire::Member& process) const {
  const std::pair wanted{process.peer, process.incarnation};
  if (std::ranges::find(superseded_, wanted) != superseded_.end()) return true;
  const auto away = turned_away_.find(process.peer);
  return away != turned_away_.end() && away->second.incarnation == process.incarnation &&
         now < away->second.until;
}

}  // namespace tw::swarm
