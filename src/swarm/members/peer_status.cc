// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/peer_status.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {
namespace {

using wire::Member;
using Status = PeerStatus::Status;

bool may_become(Status now, Status next) {
  switch (next) {
    case Status::absent:
      return now == Status::linked || now == Status::member;  // others had a part
    case Status::linked:
    case Status::member:
      return now == Status::absent;
    case Status::candidate:
    case Status::early:
      return now == Status::linked;
    case Status::refused:
      return now != Status::absent && now != Status::excluded && now != Status::refused;
    case Status::excluded:
      return now != Status::absent && now != Status::excluded;
  }
  return false;
}

}  // namespace

PeerStatus::PeerStatus(const Member& self, std::vector<Member> members, bool asks_first, Stances stances)
    : self_(self.peer), members_(std::move(members)), asks_first_(asks_first), stances_(std::move(stances)) {
  TW_CHECK(names(members_, self));
  for (const Member& m : members_) seats_.emplace(m.peer, m.incarnation);
  set_live({{self.peer, self.incarnation}}, [](PeerId) { return false; });
}

// ---- what happens to peers

PeerStatus::Status PeerStatus::of(PeerId peer) const {
  const auto found = status_.find(peer);
  return found == status_.end() ? Status::absent : found->second;
}

void PeerStatus::enter(PeerId peer, Status next) {
  TW_CHECK(may_become(of(peer), next));
  TW_CHECK(next != Status::member || is_seated(peer));
  TW_CHECK(next == Status::absent || next == Status::excluded || is_reachable(peer));
  if (next == Status::absent) {
    status_.erase(peer);
  } else {
    status_[peer] = next;
  }
}

std::vector<PeerId> PeerStatus::set_live(const Live& live, const std::function<bool(PeerId)>& has_a_part) {
  TW_CHECK(live.contains(self_));
  std::vector<PeerId> gone;
  for (const auto& [peer, incarnation] : live_) {
    const auto still = live.find(peer);
    if (still == live.end() || still->second != incarnation) gone.push_back(peer);
  }
  live_ = live;
  for (PeerId peer : gone) {
    stances_.forget(peer);
    std::erase_if(candidates_, [&](const Member& m) { return m.peer == peer; });
    if (of(peer) == Status::excluded) continue;
    const bool had_a_part =
        words_.contains(peer) || promised_.contains(peer) || of(peer) == Status::refused || has_a_part(peer);
    enter(peer, had_a_part ? Status::excluded : Status::absent);
  }
  for (const auto& [peer, incarnation] : live_) {
    if (of(peer) == Status::absent) enter(peer, is_seated(peer) ? Status::member : Status::linked);
  }
  count();
  return gone;
}

// An early candidate has the state with which the round began. Under a later ballot its used slots are
// unknown, and so are those of an id that belonged to another process in this round.
bool PeerStatus::told(const Member& from, const Word& word) {
  TW_CHECK(is_reachable(from.peer));
  note(from.peer, word);
  if (is_seated(from.peer) || is_member(candidates_, from.peer)) return false;
  candidates_.push_back(from);
  if (of(from.peer) == Status::linked) {
    const bool works = !asks_first_ && !seats_.contains(from.peer);
    enter(from.peer, works ? Status::early : Status::candidate);
    count(from.peer);
  }
  return true;
}

void PeerStatus::note(PeerId peer, const Word& word) {
  const auto [entry, first] = words_.try_emplace(peer);
  const Word before = std::exchange(entry->second, word);
  if (before.seats != word.seats || before.gave_seat != word.gave_seat) return count();
  if (first || before.parameters != word.parameters) count(peer);
}

void PeerStatus::promised(PeerId peer) {
  promised_.insert(peer);
  count(peer);
}

bool PeerStatus::refuse(PeerId peer) {
  TW_CHECK(counts(peer));
  if (of(peer) == Status::refused) return false;
  enter(peer, Status::refused);
  ++refusals_;
  count();
  return true;
}

void PeerStatus::exclude(PeerId peer) {
  TW_CHECK(counts(peer));
  enter(peer, Status::excluded);
  count();
}

// ---- answers

bool PeerStatus::counts(PeerId peer) const {
  const Status status = of(peer);
  return status != Status::absent && status != Status::excluded;
}

std::uint64_t PeerStatus::incarnation(PeerId peer) const {
  TW_CHECK(is_reachable(peer));
  return live_.at(peer);
}

bool PeerStatus::is_seated(PeerId peer) const {
  const auto here = live_.find(peer);
  const auto seat = seats_.find(peer);
  return here != live_.end() && seat != seats_.end() && here->second == seat->second;
}

const Member* PeerStatus::process(PeerId peer) const {
  const auto here = live_.find(peer);
  if (here == live_.end()) return nullptr;
  for (const std::vector<Member>* known : {&members_, &candidates_}) {
    for (const Member& m : *known) {
      if (m.peer == peer && m.incarnation == here->second) return &m;
    }
  }
  return nullptr;
}

const PeerStatus::Word* PeerStatus::word(PeerId peer) const {
  const auto found = words_.find(peer);
  return found == words_.end() ? nullptr : &found->second;
}

bool PeerStatus::has_its_seat_kept(PeerId member) const {
  return std::ranges::any_of(present_, [&](PeerId peer) {
    const Word* told = word(peer);
    return told != nullptr && std::ranges::find(told->seats, member) != told->seats.end();
  });
}

PeerStatus::Live PeerStatus::counted() const {
  Live counted;
  std::ranges::copy_if(live_, std::inserter(counted, counted.end()),
                       [&](const auto& process) { return counts(process.first); });
  return counted;
}

bool PeerStatus::is_quorum(const std::set<PeerId>& peers) const {
  std::set<PeerId> voices;
  for (PeerId peer : peers) {
    const Word* told = word(peer);
    if (told == nullptr || !told->gave_seat) voices.insert(peer);
    if (told != nullptr) voices.insert(told->seats.begin(), told->seats.end());
  }
  return swarm::is_quorum(members_, voices);
}

// True if it has the parameters of the leader.
bool PeerStatus::fits(PeerId peer) const {
  const Word* own = word(self_);
  const Word* told = word(peer);
  return own != nullptr && told != nullptr && told->parameters == own->parameters;
}

bool PeerStatus::is_eligible(PeerId peer) const {
  if (!fits(peer)) return false;
  const Status status = of(peer);
  // A member that did not promise may have used any of its slots.
  const bool may_work = !asks_first_ || promised_.contains(peer);
  return status == Status::early || (status == Status::member && may_work);
}

void PeerStatus::count() {
  present_.clear();
  eligible_.clear();
  std::set<PeerId> seated;
  for (const Member& m : members_) {
    if (!is_seated(m.peer)) continue;
    seated.insert(m.peer);
    if (counts(m.peer)) present_.push_back(m.peer);
  }
  would_have_quorum_ = is_quorum(seated);
  has_quorum_ = is_quorum({present_.begin(), present_.end()});
  for (PeerId peer : workers()) {
    if (is_eligible(peer)) eligible_.insert(peer);
  }
}

// The report of this peer has changed, but not the set of peers here.
void PeerStatus::count(PeerId peer) {
  if (peer == self_) return count();
  if (is_eligible(peer)) {
    eligible_.insert(peer);
  } else {
    eligible_.erase(peer);
  }
}

std::vector<PeerId> PeerStatus::workers() const {
  std::vector<PeerId> peers = present_;
  for (const Member& m : candidates_) {
    if (of(m.peer) == Status::early) peers.push_back(m.peer);
  }
  return peers;
}

// A peer that leaves soon may be gone before its part of the mean is sent. So may a peer at risk, but if few
// others remain, they would have too much to send.
std::vector<PeerId> PeerStatus::owners() const {
  std::vector<PeerId> peers;
  std::ranges::copy_if(present_, std::back_inserter(peers),
                       [&](PeerId peer) { return eligible_.contains(peer); });
  const auto keep = [&](auto stays, std::ptrdiff_t least) {
    if (std::ranges::count_if(peers, stays) >= least)
      std::erase_if(peers, [&](PeerId peer) { return !stays(peer); });
  };
  keep([&](PeerId peer) { return stance(peer).outlook != wire::Outlook::leaves; }, 1);
  keep([&](PeerId peer) { return stance(peer).outlook == wire::Outlook::steady; },
       std::max<std::ptrdiff_t>(1, (std::ssize(peers) + 1) / 2));
  return peers;
}

std::vector<PeerId> PeerStatus::participants() const {
  TW_CHECK(words_.contains(self_));
  std::vector<PeerId> peers;
  const auto consider = [&](PeerId peer) {
    if (counts(peer) && (!words_.contains(peer) || fits(peer))) peers.push_back(peer);
  };
  for (const Member& m : members_) {
    if (is_seated(m.peer)) consider(m.peer);
  }
  for (const Member& m : candidates_) consider(m.peer);
  return peers;
}

std::vector<Member> PeerStatus::next_members() const {
  TW_CHECK(words_.contains(self_));
  const auto is_next = [&](PeerId peer) {
    return counts(peer) && !leaves(peer) && (!words_.contains(peer) || fits(peer)) &&
           stance(peer).presence != wire::Presence::full;
  };
  std::vector<Member> next;
  std::ranges::copy_if(members_, std::back_inserter(next),
                       [&](const Member& m) { return is_seated(m.peer) && is_next(m.peer); });
  std::ranges::copy_if(candidates_, std::back_inserter(next),
                       [&](const Member& m) { return is_next(m.peer); });
  put_first(anchors_, next);
  // clang 14 cannot compile that of std::ranges.
  std::stable_partition(next.begin(), next.end(),
                        [&](const Member& m) { return stance(m.peer).outlook == wire::Outlook::steady; });
  std::stable_partition(next.begin(), next.end(),
                        [&](const Member& m) { return stance(m.peer).presence < wire::Presence::away; });
  return next;
}

std::vector<PeerId> PeerStatus::uncounted() const {
  std::vector<PeerId> peers;
  for (const Member& m : members_) {
    if (is_seated(m.peer) && !counts(m.peer)) peers.push_back(m.peer);
  }
  return peers;
}

bool PeerStatus::has_room_for(PeerId newcomer) const {
  return is_seated(newcomer) || words_.contains(newcomer) || words_.size() < seats_.size() + kMostNewcomers;
}

std::size_t PeerStatus::notes() const {
  return live_.size() + status_.size() + words_.size() + stances_.size() + promised_.size() +
         candidates_.size();
}

bool is_updating(const PeerStatus& peers, PeerId peer) {
  const PeerStatus::Word* told = peers.word(peer);
  return peers.counts(peer) && !peers.leaves(peer) && peers.stance(peer).presence == wire::Presence::here &&
         (told == nullptr || told->parameters == Digest{});
}

}  // namespace tw::swarm
