// SPDX-License-Identifier: Apache-2.0
#include "swarm/leading.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {
namespace {

using wire::Member;

/// After another member took the lead, this one waits this long before it tries again.
constexpr Duration kYield = std::chrono::seconds(2);

/// Reason why a peer should rather not lead; the least reluctant one does.
enum class Reluctance : std::uint8_t {
  none,
  may_go,           ///< its machine may be taken away, or it leaves
  does_not_follow,  ///< its thread is away: it does not know the parameters of
                    ///< the next rounds
};

// A leader has to know the parameters of its round: a peer whose thread is away comes last.
Reluctance reluctance_of(const Membership& membership, PeerId member) {
  const Stance& stance = membership.stances().of(member);
  if (stance.presence >= wire::Presence::away) return Reluctance::does_not_follow;
  return stance.outlook == wire::Outlook::steady ? Reluctance::none : Reluctance::may_go;
}

// The first member that is here, among those of the least reluctance.
std::optional<Member> next_leader(const SwarmCore& core) {
  std::optional<Member> next;
  for (const Member& m : core.members()) {
    if (!core.membership.is_here(m) && !core.membership.presumed_live(core.now, m.peer)) continue;
    if (!next || reluctance_of(core.membership, m.peer) < reluctance_of(core.membership, next->peer))
      next = m;
  }
  return next;
}

// No plan is under way: another peer may take over the lead at no cost.
bool has_not_called(const Proposer& proposer) {
  return proposer.stage() == Proposer::Stage::open || proposer.stage() == Proposer::Stage::preparing;
}

// Yields only to a member that is known to be here.
bool yields_lead(const SwarmCore& core) {
  const Reluctance own = reluctance_of(core.membership, core.options.self.peer);
  if (own == Reluctance::none) return false;
  return std::ranges::any_of(core.members(), [&](const Member& m) {
    return !m.is(core.options.self) && core.membership.is_here(m) &&
           reluctance_of(core.membership, m.peer) < own;
  });
}

}  // namespace

std::optional<Ballot> Leading::consider() {
  const Member& self = core_.options.self;
  if (lead_ || core_.part.ended() || !core_.part.is_member() || core_.now < again_at_ || core_.head()->last)
    return std::nullopt;
  if (core_.farewell.gave_seat()) return std::nullopt;
  const wire::Record& head = *core_.head();
  const std::optional<Member> first = next_leader(core_);
  // Members that promised to follow this peer wait for it, whichever others are here.
  const bool awaited = core_.acceptor.promised() > 0 && !yields_lead(core_) &&
                       ballot_owner(head.members, core_.acceptor.promised()).is(self);
  const bool its_turn = first && first->is(self);
  if (!its_turn && !awaited) return std::nullopt;
  const bool is_first = its_turn && first->is(head.members.front());
  const Ballot ballot = core_.acceptor.bid(head.members, self, is_first);
  // A run that begins anew from a checkpoint waits for company like one that begins from nothing.
  const std::uint32_t wait_for =
      core_.part.outset() == Part::Outset::awaits_company ? core_.options.wait_for : 0;
  const SwarmOptions& options = core_.options;
  const Averaged& averaged = averaged_in(options, head.round + 1);
  lead_.emplace(Lead::Options{self,
                              options.lease,
                              averaged.segments,
                              options.rounds,
                              wait_for,
                              options.patience,
                              core_.last_round.expected(),
                              {averaged.bytes, options.sites},
                              options.rarely,
                              core_.last_round.shares(),
                              averaged.sum_bytes,
                              core_.membership.stances(),
                              core_.last_round.shortest()},
                head, ballot, core_.now);
  began_at_ = core_.now;
  knows_ = core_.membership.roster().version();
  lead_->hold_back_for(core_.membership.held_back_for());
  see_who_is_here();
  core_.outputs.report({.at = core_.now, .round = head.round + 1, .fact = event::Lead{.ballot = ballot}});
  return ballot;
}

void Leading::see_who_is_here() { lead_->set_live(core_.now, core_.membership.live(), core_.anchors()); }

// A lead that resigned in no time would do so again: a peer that decides alone hears nothing new meanwhile.
void Leading::leave_a_lost_one() {
  if (lead_ && has_not_called(lead_->proposer()) && yields_lead(core_)) lead_.reset();
  if (!lead_ || (core_.acceptor.promised() <= lead_->ballot() && !lead_->resigned())) return;
  const bool in_no_time = began_at_ == core_.now;
  if (!lead_->resigned() || in_no_time) again_at_ = core_.now + kYield;
  core_.acceptor.outbid(lead_->proposer().outbid());
  lead_.reset();
}

// Every member keeps this list, so that a new leader knows since when joiners are waited for.
void Leading::hold_back() {
  const std::vector<PeerId> added = core_.membership.hold_back(core_.now);
  if (!lead_) return;
  for (PeerId peer : added) {
    core_.outputs.report({core_.now, core_.head()->round + 1, peer,
                          "no leases go out before it has the state of the run", event::Wait{}});
  }
  lead_->hold_back_for(core_.membership.held_back_for());
}

std::optional<wire::Stop> Leading::step() {
  hold_back();
  if (!lead_) return std::nullopt;
  if (is_last_ || core_.run_end) lead_->end_run();
  const std::uint64_t version = core_.membership.roster().version();
  if (std::exchange(knows_, version) != version) see_who_is_here();
  lead_->step(core_.now);
  for (wire::Envelope& envelope : lead_->take_messages())
    core_.send(envelope.to, std::move(envelope.message));
  for (world::Event& event : lead_->take_events()) core_.outputs.report(std::move(event));
  if (!lead_->hopeless().empty()) {
    const wire::Stop stop{core_.head()->round + 1, lead_->hopeless()};
    core_.broadcast(stop);
    return stop;
  }
  if (!lead_->committed()) return std::nullopt;
  TW_CHECK(core_.of_this_round(lead_->committed()->round));
  const wire::Commit commit{*lead_->committed()};
  end();
  core_.broadcast(commit);
  core_.send(core_.options.self.peer,
             commit);  // this peer follows its own decision like any other
  return std::nullopt;
}

Wait Leading::wait_to_lead() const {
  Wait wait{Wait::Kind::takeover, {}, core_.head()->round + 1, core_.acceptor.promised()};
  if (yields_lead(core_)) {
    wait.peers.push_back(next_leader(core_)->peer);
    return wait;
  }
  const Member& owner = ballot_owner(core_.members(), core_.acceptor.promised());
  if (!owner.is(core_.options.self)) wait.peers.push_back(owner.peer);
  for (const Member& m : core_.members()) {
    if (wait.peers.empty() && core_.membership.presumed_live(core_.now, m.peer)) wait.peers.push_back(m.peer);
  }
  if (wait.peers.empty()) wait.peers = {core_.options.self.peer};
  return wait;
}

}  // namespace tw::swarm
