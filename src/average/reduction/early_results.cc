// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/early_results.h"

#include "base/check.h"

namespace tw::average {

void EarlyResults::know(const wire::Plan& plan) {
  for (const wire::Contribution& c : plan.draft.contributors) known_.insert(c.peer);
  known_.insert(plan.participants.begin(), plan.participants.end());
}

bool EarlyResults::put(PeerId from, const wire::Gather& gather) {
  const ReceivedResults::Origin origin{{gather.ballot, gather.version}, gather.set};
  return (gather.of_site ? site_sums_ : means_).put(from, origin, gather.segment, gather.payload);
}

std::vector<EarlyResults::Mean> EarlyResults::means_of(std::uint64_t set) const {
  std::vector<Mean> means;
  for (const auto& [peer, latest] : means_.by_sender()) {
    if (latest.set == set && knows(peer)) means.push_back({peer, latest.segments});
  }
  return means;
}

Blob EarlyResults::site_sum(std::uint64_t set, std::uint64_t segment) const {
  for (const auto& [peer, latest] : site_sums_.by_sender()) {
    TW_CHECK(segment < latest.segments.size());
    if (latest.set == set && !latest.segments[segment].empty() && knows(peer))
      return latest.segments[segment];
  }
  return {};
}

void EarlyResults::drop(PeerId sender) {
  TW_CHECK(!knows(sender));
  means_.drop(sender);
  site_sums_.drop(sender);
}

}  // namespace tw::average
