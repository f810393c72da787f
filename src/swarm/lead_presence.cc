// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "swarm/lead.h"
#include "swarm/quorum.h"

namespace tw {

bool Lead::counts(PeerId peer) const {
  return live_.contains(peer) && !left_out_.contains(peer) && !unlinked_.contains(peer);
}

bool Lead::seated(PeerId peer) const {
  const auto here = live_.find(peer);
  const auto seat = seats_.find(peer);
  return here != live_.end() && seat != seats_.end() && here->second == seat->second;
}

void Lead::recount() {
  present_.clear();
  eligible_.clear();
  std::set<PeerId> live;
  for (const Member& m : head_.members) {
    if (!seated(m.peer)) continue;
    live.insert(m.peer);
    if (counts(m.peer)) present_.push_back(m.peer);
  }
  Live counted;
  std::ranges::copy_if(live_, std::inserter(counted, counted.end()),
                       [&](const auto& process) { return counts(process.first); });
  proposer_.set_here(std::move(counted));
  enough_live_ = has_quorum(live);
  quorum_present_ = has_quorum({present_.begin(), present_.end()});
  for (PeerId peer : workers()) {
    if (is_eligible(peer)) eligible_.insert(peer);
  }
}

// What this peer said has changed, not who is there.
void Lead::recount(PeerId peer) {
  if (peer == options_.self.peer) return recount();
  if (is_eligible(peer)) {
    eligible_.insert(peer);
  } else {
    eligible_.erase(peer);
  }
}

bool Lead::is_eligible(PeerId peer) const {
  const auto own = seen_.find(options_.self.peer);
  const auto seen = seen_.find(peer);
  const bool fits =
      own != seen_.end() && seen != seen_.end() && seen->second.parameters == own->second.parameters;
  if (!fits || !counts(peer) || refused_.contains(peer)) return false;
  // A peer that did not promise may have used any of its slots.
  return came_early(peer) || (seated(peer) && (ballot() == 0 || proposer_.has_promised(peer)));
}

// It has the state with which the round began and works for it, though it reduces no share and has no say in
// what is decided. Under a later ballot it is not known which slots it has used, nor of an id that had
// another process in this round.
bool Lead::came_early(PeerId peer) const {
  return counts(peer) && early_.contains(peer) && is_member(candidates_, peer);
}

std::vector<PeerId> Lead::workers() const {
  std::vector<PeerId> peers = present_;
  for (const Member& m : candidates_) {
    if (came_early(m.peer)) peers.push_back(m.peer);
  }
  return peers;
}

std::vector<PeerId> Lead::owners() const {
  std::vector<PeerId> peers;
  std::ranges::copy_if(present_, std::back_inserter(peers),
                       [&](PeerId peer) { return eligible_.contains(peer); });
  return peers;
}

bool Lead::has_room_for(PeerId newcomer) const {
  return seated(newcomer) || seen_.contains(newcomer) || seen_.size() < seats_.size() + kMostNewcomers;
}

// In the plan under way, or as a member.
bool Lead::has_a_part(PeerId peer) const {
  if (stage() != Stage::proposed) return false;
  return seats_.contains(peer) ||
         std::ranges::find(proposed()->participants, peer) != proposed()->participants.end();
}

std::size_t Lead::notes() const {
  std::size_t notes = live_.size() + left_out_.size() + refused_.size() + unlinked_.size() + seen_.size() +
                      paces_.size() + early_.size() + candidates_.size() + promises().size() + slow_.size();
  for (const auto& [reporter, complaints] : complaints_) {
    notes += 1 + complaints.unreachable.size();
    for (const auto& [kind, suspects] : complaints.owes) notes += suspects.size();
  }
  return notes;
}

bool Lead::has_quorum(const std::set<PeerId>& peers) const { return is_quorum(head_.members, peers); }

}  // namespace tw
