// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm_core.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {

using wire::Member;

void Outputs::ask_owner(Action action) { actions_.push_back(std::move(action)); }

std::vector<world::Event> Outputs::take_events_until(Round round) {
  const auto later = std::stable_partition(events_.begin(), events_.end(),
                                           [&](const world::Event& event) { return event.round <= round; });
  std::vector<world::Event> due(std::make_move_iterator(events_.begin()), std::make_move_iterator(later));
  events_.erase(events_.begin(), later);
  return due;
}

SwarmCore::SwarmCore(SwarmOptions of_swarm, Instant begins)
    : options(std::move(of_swarm)),
      now(begins),
      next_tick(begins),
      part(options.returns),
      membership(options.self, options.bootstrap) {}

void SwarmCore::wake(Instant at) {
  now = at;
  const Duration late = now - next_tick;
  if (late <= Detector::kStopped) return;
  next_tick = now;
  last_round.stood_still(late);
}

const std::vector<Member>& SwarmCore::members() const {
  static const std::vector<Member> kNone;
  return head() ? head()->members : kNone;
}

Work* SwarmCore::work_of(Round round) {
  if (of_this_round(round)) return &work;
  return next_work && next_work->round() == round ? &*next_work : nullptr;
}

std::optional<PeerId> SwarmCore::leader() const {
  if (!head() || head()->members.empty()) return std::nullopt;
  const Member& owner = ballot_owner(head()->members, acceptor.promised());
  if (membership.is_here(owner)) return owner.peer;
  const auto first =
      std::ranges::find_if(head()->members, [&](const Member& m) { return membership.is_here(m); });
  return first == head()->members.end() ? std::nullopt : std::optional(first->peer);
}

bool SwarmCore::is_eldest() const {
  const std::vector<Member>& by_age = history.by_age();
  const auto eldest = std::ranges::find_if(by_age, [&](const Member& one) {
    return one.is(options.self) || names(members(), one) || membership.roster().is_open(one);
  });
  return eldest != by_age.end() && eldest->is(options.self);
}

bool SwarmCore::is_orphaned() const {
  return part.peer_state() == wire::PeerState::ready && !head()->last &&
         std::ranges::none_of(members(), [&](const Member& m) { return membership.is_here(m); });
}

std::vector<PeerId> SwarmCore::not_at_the_end() const {
  TW_CHECK(head() && head()->last);
  return membership.lacking(history.digest(), members());
}

std::set<PeerId> SwarmCore::anchors() const {
  std::set<PeerId> anchors = membership.roster().anchors();
  if (options.anchor) anchors.insert(options.self.peer);
  return anchors;
}

void SwarmCore::send(PeerId to, wire::Message message) {
  if (to == options.self.peer) {
    own_messages.push_back(std::move(message));
  } else if (membership.roster().is_open(to)) {
    outputs.send(to, std::move(message));
  }
}

void SwarmCore::broadcast(const wire::Message& message) {
  for (PeerId peer : membership.roster().open_peers()) send(peer, message);
}

}  // namespace tw::swarm
