// SPDX-License-Identifier: Apache-2.0
#include "swarm/roster.h"

#include <algorithm>

#include "swarm/quorum.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstBackoff = 200ms;
constexpr Duration kLastBackoff = 5s;
/// A peer that is no member is dialled so often before it is forgotten.
constexpr int kTries = 6;
/// The same when its dials come to nothing without a word: to an address where somebody else is.
constexpr int kDumbTries = 12;
/// Whatever others tell of.
constexpr std::size_t kMostKnown = 4096;

bool is_address(const std::string& address) {
  return !address.empty() && address.size() <= Roster::kMostAddressBytes;
}

}  // namespace

Roster::Roster(PeerId self, std::vector<std::string> bootstrap)
    : self_(self), bootstrap_(std::move(bootstrap)) {}

void Roster::learn(const Member& member) {
  if (member.peer == self_ || !is_address(member.address)) return;
  Entry& entry = entries_[member.peer];
  entry.teller.reset();
  if (!entry.open) entry.address = member.address;
}

void Roster::hear(PeerId teller, const Member& member) {
  if (member.peer == self_ || !is_address(member.address)) return;
  const auto known = entries_.find(member.peer);
  if (known != entries_.end()) {
    if (!known->second.open) known->second.address = member.address;
    return;
  }
  const auto told = std::count_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.second.teller == teller; });
  if (entries_.size() >= kMostKnown || static_cast<std::size_t>(told) >= kMostToldOf) return;
  Entry& entry = entries_[member.peer];
  entry.address = member.address;
  entry.teller = teller;
}

void Roster::open(const Member& peer) {
  entries_[peer.peer] = Entry{peer.address, peer.incarnation, true, std::nullopt, {}, std::nullopt, 0};
  dials_.erase(peer.address);
}

void Roster::close(Instant now, PeerId peer) {
  const auto found = entries_.find(peer);
  if (found == entries_.end() || !found->second.open) return;
  found->second.open = false;
  found->second.heartbeat.reset();
  dials_[found->second.address] = Dial{now + kFirstBackoff, kFirstBackoff, 0};
}

void Roster::refused(Instant now, const std::string& address) {
  Dial& dial = dials_[address];
  dial.backoff = std::clamp<Duration>(dial.backoff * 2, kFirstBackoff, kLastBackoff);
  dial.next = now + dial.backoff;
  ++dial.failures;
}

void Roster::heard(Instant now, PeerId peer, const Heartbeat& heartbeat) {
  const auto found = entries_.find(peer);
  if (found == entries_.end()) return;
  found->second.heartbeat = heartbeat;
  found->second.heard_at = now;
}

void Roster::now_follows(const Member& member) {
  const auto found = entries_.find(member.peer);
  if (!is_open(member) || !found->second.heartbeat) return;
  Standing& standing = found->second.heartbeat->standing;
  if (standing == Standing::fresh) standing = Standing::member;
}

Duration Roster::heartbeat_age(Instant now, PeerId peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? Duration{0} : now - found->second.heard_at;
}

std::vector<std::string> Roster::dials(Instant now, const std::vector<Member>& members) {
  std::vector<std::string> due;
  const auto consider = [&](const std::string& address) {
    Dial& dial = dials_[address];
    if (now < dial.next) return false;
    dial.next = now + kLastBackoff;  // an answer (open or refused) comes before
    due.push_back(address);
    return true;
  };
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool given_up =
        !entry->second.open && !is_member(members, entry->first) &&
        (dials_[entry->second.address].failures >= kTries || entry->second.dialled >= kDumbTries);
    if (given_up) dials_.erase(entry->second.address);
    entry = given_up ? entries_.erase(entry) : std::next(entry);
  }
  forget_dials();
  for (auto& [peer, entry] : entries_) {
    if (!entry.open && consider(entry.address)) ++entry.dialled;
  }
  if (open_peers().empty()) {
    for (const std::string& address : bootstrap_) consider(address);
  }
  return due;
}

// Whoever goes by ever new addresses leaves no trace of the former ones.
void Roster::forget_dials() {
  if (dials_.size() <= entries_.size() + bootstrap_.size()) return;
  std::set<std::string> known(bootstrap_.begin(), bootstrap_.end());
  for (const auto& [peer, entry] : entries_) known.insert(entry.address);
  std::erase_if(dials_, [&](const auto& dial) { return !known.contains(dial.first); });
}

bool Roster::is_open(PeerId peer) const {
  const auto found = entries_.find(peer);
  return found != entries_.end() && found->second.open;
}

bool Roster::is_open(const Member& member) const {
  const auto found = entries_.find(member.peer);
  return found != entries_.end() && found->second.open && found->second.incarnation == member.incarnation;
}

std::vector<PeerId> Roster::open_peers() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, entry] : entries_) {
    if (entry.open) peers.push_back(peer);
  }
  return peers;
}

std::vector<Member> Roster::linked() const {
  std::vector<Member> members;
  for (const auto& [peer, entry] : entries_) {
    if (entry.open) members.push_back({peer, entry.address, entry.incarnation});
  }
  return members;
}

std::set<PeerId> Roster::following() const {
  std::set<PeerId> peers;
  for (const auto& [peer, entry] : entries_) {
    if (entry.open && !entry.behind()) peers.insert(peer);
  }
  return peers;
}

std::map<PeerId, std::uint64_t> Roster::following_processes() const {
  std::map<PeerId, std::uint64_t> processes;
  for (const auto& [peer, entry] : entries_) {
    if (entry.open && !entry.behind()) processes.emplace_hint(processes.end(), peer, entry.incarnation);
  }
  return processes;
}

bool Roster::Entry::behind() const {
  return heartbeat && (heartbeat->standing == Standing::fresh || heartbeat->standing == Standing::syncing);
}

bool Roster::follows(const Member& member) const {
  return is_open(member) && !entries_.at(member.peer).behind();
}

std::uint64_t Roster::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [peer, entry] : entries_) bytes += sizeof peer + sizeof entry + entry.address.size();
  for (const auto& [address, dial] : dials_) bytes += sizeof address + sizeof dial + address.size();
  return bytes;
}

std::optional<Heartbeat> Roster::last_heartbeat(PeerId peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? std::nullopt : found->second.heartbeat;
}

Member Roster::process(PeerId peer) const {
  const auto found = entries_.find(peer);
  if (found == entries_.end()) return {peer, {}};
  return {peer, found->second.address, found->second.incarnation};
}

}  // namespace tw
