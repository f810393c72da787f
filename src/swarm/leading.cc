// SPDX-License-Identifier: Apache-2.0
#include "swarm/leading.h"

#include <algorithm>

#include "swarm/ballots/quorum.h"
#include "swarm/members/own_word.h"

namespace tw::swarm {
namespace {

using wire::Member;

/// After another member took the lead, this one waits this long before it tries again.
constexpr Duration kYield = std::chrono::seconds(2);

// A leader has to know the parameters of its round: a peer whose thread is away comes last.
Reluctance reluctance_of(const Membership& membership, PeerId member) {
  const Stance& stance = membership.stances().of(member);
  if (stance.presence >= wire::Presence::away) return Reluctance::does_not_follow;
  return stance.outlook == wire::Outlook::steady ? Reluctance::none : Reluctance::may_go;
}

// The first member that is here, among those of the least reluctance.
std::optional<Member> next_leader(const Leading::View& view) {
  std::optional<Member> next;
  for (const Member& m : view.head().members) {
    if (!view.membership.is_here(m) && !view.membership.presumed_live(view.now, m.peer)) continue;
    if (!next || reluctance_of(view.membership, m.peer) < reluctance_of(view.membership, next->peer))
      next = m;
  }
  return next;
}

// Yields only to a member that is known to be here.
bool yields_lead(const Leading::View& view) {
  const Reluctance own = reluctance_of(view.membership, view.options.self.peer);
  if (own == Reluctance::none) return false;
  return std::ranges::any_of(view.head().members, [&](const Member& m) {
    return !m.is(view.options.self) && view.membership.is_here(m) &&
           reluctance_of(view.membership, m.peer) < own;
  });
}

}  // namespace

std::optional<Ballot> Leading::consider(const View& view, Acceptor& acceptor) {
  const Member& self = view.options.self;
  if (lead_ || view.part.ended() || !view.part.is_member() || view.now < again_at_ || view.head().last)
    return std::nullopt;
  if (view.farewell.gave_seat()) return std::nullopt;
  const wire::Record& head = view.head();
  const std::optional<Member> first = next_leader(view);
  // Members that promised to follow this peer wait for it, whichever others are here.
  const bool awaited = view.acceptor.promised() > 0 && !yields_lead(view) &&
                       ballot_owner(head.members, view.acceptor.promised()).is(self);
  const bool its_turn = first && first->is(self);
  if (!its_turn && !awaited) return std::nullopt;
  const bool is_first = its_turn && first->is(head.members.front());
  const Ballot ballot = acceptor.bid(head.members, self, is_first);
  // A run that begins anew from a checkpoint waits for company like one that begins from nothing.
  const std::uint32_t wait_for =
      view.part.outset() == Part::Outset::awaits_company ? view.options.wait_for : 0;
  lead_.emplace(Lead::Options{self, view.options.lease, view.options.segments, view.options.rounds, wait_for,
                              view.options.patience, view.last_round.expected(), view.options.division,
                              view.options.rarely, view.last_round.shares(), view.options.sum_bytes,
                              view.membership.stances()},
                head, ballot, view.now);
  knows_ = view.membership.roster().version();
  lead_->hold_back_for(view.membership.held_back_for());
  lead_->set_anchors(anchors_of(view.membership, view.options));
  lead_->set_live(view.now, view.membership.live());
  return ballot;
}

// A lead that resigned in no time would do so again: a peer that decides alone hears nothing new meanwhile.
void Leading::leave_a_lost_one(const View& view, Acceptor& acceptor) {
  if (lead_ && lead_->has_not_called() && yields_lead(view)) lead_.reset();
  if (!lead_ || (view.acceptor.promised() <= lead_->ballot() && !lead_->resigned())) return;
  const bool in_no_time = lead_->began_at() == view.now;
  if (!lead_->resigned() || in_no_time) again_at_ = view.now + kYield;
  acceptor.outbid(lead_->outbid());
  lead_.reset();
}

void Leading::step(const View& view) {
  if (is_last_) lead_->end_run();
  const std::uint64_t version = view.membership.roster().version();
  if (std::exchange(knows_, version) != version) {
    lead_->set_anchors(anchors_of(view.membership, view.options));
    lead_->set_live(view.now, view.membership.live());
  }
  lead_->step(view.now);
}

std::optional<PeerId> leader_of(const History& history, const Membership& membership,
                                const Acceptor& acceptor) {
  if (!history.head() || history.head()->members.empty()) return std::nullopt;
  const std::vector<Member>& members = history.head()->members;
  const Member& owner = ballot_owner(members, acceptor.promised());
  if (membership.is_here(owner)) return owner.peer;
  const auto first = std::ranges::find_if(members, [&](const Member& m) { return membership.is_here(m); });
  return first == members.end() ? std::nullopt : std::optional(first->peer);
}

Wait wait_to_lead(const Leading::View& view) {
  Wait wait{Wait::Kind::takeover, {}, view.head().round + 1, view.acceptor.promised()};
  if (yields_lead(view)) {
    wait.peers.push_back(next_leader(view)->peer);
    return wait;
  }
  const Member& owner = ballot_owner(view.head().members, view.acceptor.promised());
  if (!owner.is(view.options.self)) wait.peers.push_back(owner.peer);
  for (const Member& m : view.head().members) {
    if (wait.peers.empty() && view.membership.presumed_live(view.now, m.peer)) wait.peers.push_back(m.peer);
  }
  if (wait.peers.empty()) wait.peers = {view.options.self.peer};
  return wait;
}

std::set<PeerId> anchors_of(const Membership& membership, const SwarmOptions& options) {
  std::set<PeerId> anchors = membership.roster().anchors();
  if (options.anchor) anchors.insert(options.self.peer);
  return anchors;
}

}  // namespace tw::swarm
