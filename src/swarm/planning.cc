// SPDX-License-Identifier: Apache-2.0
#include "swarm/planning.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "swarm/shares/shares.h"
#include "swarm/shares/sites.h"
#include "swarm/straggler_policy.h"

namespace tw::swarm {

using wire::Plan;

void Planning::go_on_after(const Plan& former) {
  called_ = former.sites.empty() ? std::make_shared<const Plan>(former) : nullptr;
}

void Planning::divide(Plan& plan, const SharedPlan& proposed) {
  if (proposed) called_ = proposed;
  const std::vector<Participant> all = participants(plan);
  if (!called_) {
    swarm::divide(plan, options_.segments, all, options_.shares_before, options_.division);
  } else if (called_->sites.empty()) {
    plan.shares = reown(called_->shares, all);
  } else {
    divide_as_before(plan, *called_, all);
  }
  for (wire::Share& share : plan.shares) share.sealed = false;
  relieved_ = false;
}

void Planning::mend(Plan& plan) const { mend_sites(plan, options_.segments, participants(plan)); }

void Planning::serve_sealed(Plan& plan, const std::set<PeerId>& keepers, bool is_fresh) const {
  TW_CHECK(!keepers.empty());
  auto keeper = keepers.begin();
  for (wire::Share& share : plan.shares) {
    const bool has_it = is_fresh && !relieved_ && status_.counts(share.owner);
    if (keepers.contains(share.owner) || has_it) continue;
    share.owner = *keeper;
    share.sealed = true;
    if (++keeper == keepers.end()) keeper = keepers.begin();
  }
  std::erase_if(plan.participants, [&](PeerId peer) { return !status_.counts(peer); });
  mend(plan);
}

bool Planning::relieve(Plan& plan, PeerId slow, const RangeSet& moves, const std::set<PeerId>& keepers) {
  std::vector<Participant> able = participants(plan);
  for (Participant& participant : able) {
    participant.owns = participant.owns && participant.peer != slow &&
                       (keepers.empty() || keepers.contains(participant.peer));
  }
  if (moves.empty() || std::ranges::none_of(able, &Participant::owns)) return false;
  plan.shares = moved(plan.shares, moves, able);
  for (wire::Share& share : plan.shares) share.sealed = share.sealed || keepers.contains(share.owner);
  relieved_ = true;
  return true;
}

double Planning::least_reduce_s(const Plan& plan) const {
  return seconds_of(plan, options_.division.bytes, participants(plan));
}

Duration Planning::expected_reduce(const Plan& plan, Duration usual) const {
  std::set<PeerId> senders;
  for (const wire::Contribution& c : plan.draft.contributors) senders.insert(c.peer);
  const std::size_t members = std::max<std::size_t>(1, status_.present().size());
  const bool with_joiner =
      std::ranges::any_of(senders, [&](PeerId peer) { return !is_member(status_.members(), peer); });
  return swarm::expected_reduce(usual, from_seconds(least_reduce_s(plan)), senders.size(), members,
                                with_joiner);
}

std::vector<Participant> Planning::participants(const Plan& plan) const {
  const std::vector<PeerId> owning = status_.owners();
  std::vector<Participant> participants;
  for (PeerId peer : plan.participants) {
    Participant participant{peer, std::find(owning.begin(), owning.end(), peer) != owning.end(), 0};
    for (const wire::Contribution& c : plan.draft.contributors)
      participant.contributions += c.peer == peer ? 1 : 0;
    participant.bandwidth = status_.stance(peer).bandwidth;
    if (const wire::Member* process = status_.process(peer)) participant.site = process->site;
    participants.push_back(std::move(participant));
  }
  return participants;
}

}  // namespace tw::swarm
