// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/lineage.h"

#include <set>

#include "swarm/ballots/quorum.h"

namespace tw::swarm {

void continue_lineage(wire::Record& next, const wire::Record& head) {
  const bool stands_still = next.minority || !head.awaited.empty();
  next.majority_samples = head.majority_samples + (stands_still ? 0 : next.samples);
  next.had_company = head.had_company || next.members.size() > 1;
  next.restarts = head.restarts;
  next.awaited.clear();
  if (!stands_still) return;
  const std::vector<PeerId> awaited = head.awaited.empty() ? ids_of(head.members) : head.awaited;
  const std::vector<PeerId> here = ids_of(next.members);
  if (!is_quorum_of(awaited, {here.begin(), here.end()})) next.awaited = awaited;
}

}  // namespace tw::swarm
