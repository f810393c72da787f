// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/roster.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {
namespace {

using wire::Member;
using namespace std::chrono_literals;

constexpr Duration kFirstBackoff = 200ms;
constexpr Duration kLastBackoff = 5s;
/// A non-member is forgotten after this many dials.
constexpr int kTries = 6;
/// The same for a former member: some five minutes. It may have been restarted and know no living peer.
constexpr int kTriesOfMember = 60;
/// The same if dials fail without a reason, as at an address where another peer is.
constexpr int kDumbTries = 12;
/// Limit for peers known from hearsay.
constexpr std::size_t kMostKnown = Roster::kMostStrangers;

bool is_address(const std::string& address) {
  return !address.empty() && address.size() <= wire::kMostAddressBytes;
}

}  // namespace

Roster::Roster(PeerId self, std::vector<std::string> bootstrap)
    : self_(self), bootstrap_(std::move(bootstrap)) {}

void Roster::learn(const Member& member) {
  if (member.peer == self_ || !is_address(member.address)) return;
  Entry& entry = entries_[member.peer];
  set_teller(entry, std::nullopt);
  entry.was_member = true;
  if (!entry.open) set_address(entry, member.address);
}

void Roster::hear(PeerId teller, const Member& member) {
  if (member.peer == self_ || !is_address(member.address)) return;
  const auto known = entries_.find(member.peer);
  if (known != entries_.end()) {
    if (known->second.open) return;
    // Another peer reaches it: it may have been out of reach until now.
    set_address(known->second, member.address);
    known->second.dialled = 0;
    if (const auto dial = dials_.find(member.address); dial != dials_.end()) dial->second.failures = 0;
    return;
  }
  const auto told = told_.find(teller);
  if (entries_.size() >= kMostKnown || (told != told_.end() && told->second >= kMostToldOf)) return;
  Entry& entry = entries_[member.peer];
  set_address(entry, member.address);
  set_teller(entry, teller);
}

void Roster::open(const Member& peer, bool anchor) {
  TW_CHECK(peer.peer != self_);
  Entry& entry = entries_[peer.peer];
  set_address(entry, peer.address);
  set_teller(entry, std::nullopt);
  entry = Entry{entry.address, peer.incarnation, peer.site, true, anchor, std::nullopt, {},
                std::nullopt,  entry.was_member, 0};
  update(peer.peer, entry);
  dials_.erase(peer.address);
}

void Roster::close(Instant now, PeerId peer) {
  const auto found = entries_.find(peer);
  if (found == entries_.end() || !found->second.open) return;
  const std::optional<wire::Heartbeat>& last = found->second.heartbeat;
  if (last && last->peer_state == wire::PeerState::leaving) found->second.was_member = false;
  found->second.open = false;
  found->second.heartbeat.reset();
  linked_at_.clear();
  update(peer, found->second);
  dials_[found->second.address] = Dial{now + kFirstBackoff, kFirstBackoff, 0};
}

void Roster::refused(Instant now, const std::string& address) {
  Dial& dial = dials_[address];
  dial.backoff = std::clamp<Duration>(dial.backoff * 2, kFirstBackoff, kLastBackoff);
  dial.next = now + dial.backoff;
  ++dial.failures;
}

void Roster::linked_there(const std::string& address) {
  if (std::ranges::find(bootstrap_, address) != bootstrap_.end()) linked_at_.insert(address);
}

void Roster::heard(Instant now, PeerId peer, const wire::Heartbeat& heartbeat) {
  const auto found = entries_.find(peer);
  if (found == entries_.end()) return;
  std::optional<wire::Heartbeat>& last = found->second.heartbeat;
  const bool news = !last || last->peer_state != heartbeat.peer_state || last->outlook != heartbeat.outlook ||
                    last->presence != heartbeat.presence;
  last = heartbeat;
  found->second.heard_at = now;
  if (!news) return;
  ++version_;
  update(peer, found->second);
}

void Roster::now_follows(const Member& member) {
  const auto found = entries_.find(member.peer);
  if (!is_open(member) || !found->second.heartbeat) return;
  wire::PeerState& peer_state = found->second.heartbeat->peer_state;
  if (peer_state == wire::PeerState::fresh) peer_state = wire::PeerState::member;
  update(member.peer, found->second);
}

void Roster::set_address(Entry& entry, const std::string& address) {
  TW_CHECK(address_bytes_ >= entry.address.size());
  address_bytes_ += address.size() - entry.address.size();
  entry.address = address;
}

void Roster::set_teller(Entry& entry, std::optional<PeerId> teller) {
  if (entry.teller && --told_.at(*entry.teller) == 0) told_.erase(*entry.teller);
  if (teller) ++told_[*teller];
  entry.teller = teller;
}

void Roster::update(PeerId peer, const Entry& entry) {
  const auto place = std::lower_bound(open_.begin(), open_.end(), peer);
  const bool was_open = place != open_.end() && *place == peer;
  if (entry.open && !was_open) open_.insert(place, peer);
  if (!entry.open && was_open) open_.erase(place);
  TW_CHECK(open_.size() <= entries_.size());
  const auto known = following_.find(peer);
  const bool follows = entry.open && !entry.behind();
  const bool same =
      follows ? known != following_.end() && known->second == entry.incarnation : known == following_.end();
  if (same) return;
  ++version_;
  if (follows) {
    following_[peer] = entry.incarnation;
  } else {
    following_.erase(peer);
  }
  TW_CHECK(following_.size() <= open_.size());
}

bool Roster::fetches(PeerId peer) const {
  const auto found = entries_.find(peer);
  return found != entries_.end() && found->second.open && found->second.heartbeat &&
         found->second.heartbeat->peer_state == wire::PeerState::syncing;
}

Duration Roster::heartbeat_age(Instant now, PeerId peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? Duration{0} : now - found->second.heard_at;
}

bool Roster::given_up(PeerId peer, Entry& entry, const std::vector<Member>& members) {
  if (entry.open || is_member(members, peer)) return false;
  if (!is_address(entry.address)) return true;  // such a peer cannot be dialled, only dial
  const bool long_enough = entry.was_member
                               ? entry.dialled >= kTriesOfMember
                               : dials_[entry.address].failures >= kTries || entry.dialled >= kDumbTries;
  if (!long_enough) return false;
  dials_.erase(entry.address);
  set_address(entry, {});
  set_teller(entry, std::nullopt);
  return true;
}

std::vector<std::string> Roster::dials(Instant now, const std::vector<Member>& members,
                                       const Rarely& chance) {
  std::vector<std::string> due;
  const auto consider = [&](const std::string& address) {
    Dial& dial = dials_[address];
    if (now < dial.next && !rarely(chance, "swarm.redial")) return false;
    dial.next = now + kLastBackoff;  // an answer (open or refused) comes before
    due.push_back(address);
    return true;
  };
  std::map<PeerId, Entry*> unlinked;  // in the order of ids on every machine
  if (open_.size() < entries_.size()) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const bool over = given_up(entry->first, entry->second, members);
      entry = over ? entries_.erase(entry) : std::next(entry);
    }
    for (auto& [peer, entry] : entries_) {
      if (!entry.open && is_address(entry.address)) unlinked.emplace(peer, &entry);
    }
  }
  forget_dials();
  for (const auto& [peer, entry] : unlinked) {
    if (consider(entry->address)) ++entry->dialled;
  }
  // Peers that found only each other have company, but not the peer that begins the history. A bootstrap peer
  // may also have been restarted and know no address to dial.
  const bool outside = members.empty() || open_.empty();
  const std::size_t count = outside ? bootstrap_.size() : std::min(bootstrap_.size(), kFewBootstraps);
  for (const std::string& address : std::span(bootstrap_).first(count)) {
    Dial& dial = dials_[address];
    if (now >= dial.next && is_linked_at(address)) {
      dial.next = now + kLastBackoff;
    } else {
      consider(address);
    }
  }
  return due;
}

void Roster::is_own(const std::string& address) { std::erase(bootstrap_, address); }

// A peer that keeps changing its address leaves no trace of former ones.
void Roster::forget_dials() {
  if (dials_.size() <= entries_.size() + bootstrap_.size()) return;
  std::set<std::string> known(bootstrap_.begin(), bootstrap_.end());
  for (const auto& [peer, entry] : entries_) known.insert(entry.address);
  std::erase_if(dials_, [&](const auto& dial) { return !known.contains(dial.first); });
}

void Roster::forget_strangers(const std::vector<Member>& members) {
  if (entries_.size() <= open_.size() + members.size() + kMostStrangers) return;
  std::set<PeerId> kept(open_.begin(), open_.end());
  for (const Member& m : members) kept.insert(m.peer);
  std::vector<std::pair<Instant, PeerId>> strangers;
  for (const auto& [peer, entry] : entries_) {
    if (!kept.contains(peer)) strangers.emplace_back(entry.heard_at, peer);
  }
  std::sort(strangers.begin(), strangers.end());
  strangers.resize(strangers.size() / 4);  // so that it is not done for each new one
  for (const auto& [heard_at, peer] : strangers) {
    Entry& entry = entries_.at(peer);
    dials_.erase(entry.address);
    set_address(entry, {});
    set_teller(entry, std::nullopt);
    entries_.erase(peer);
  }
}

bool Roster::is_linked_at(const std::string& address) const {
  if (linked_at_.contains(address)) return true;
  return std::ranges::any_of(open_, [&](PeerId peer) { return entries_.at(peer).address == address; });
}

bool Roster::has_asked_all() const {
  if (bootstrap_.empty()) return true;
  const auto asked = [&](const std::string& address) {
    const auto dial = dials_.find(address);
    return is_linked_at(address) || (dial != dials_.end() && dial->second.failures > 0);
  };
  const auto heard = [&](PeerId peer) { return entries_.at(peer).heartbeat.has_value(); };
  return std::ranges::all_of(bootstrap_, asked) && std::ranges::all_of(open_, heard);
}

bool Roster::is_open(PeerId peer) const {
  const auto found = entries_.find(peer);
  return found != entries_.end() && found->second.open;
}

bool Roster::is_open(const Member& member) const {
  const auto found = entries_.find(member.peer);
  return found != entries_.end() && found->second.open && found->second.incarnation == member.incarnation;
}

std::set<PeerId> Roster::anchors() const {
  std::set<PeerId> anchors;
  for (PeerId peer : open_)
    if (entries_.at(peer).anchor) anchors.insert(peer);
  return anchors;
}

std::vector<Member> Roster::linked() const { return linked(0, open_.size()); }

std::vector<Member> Roster::linked(std::uint64_t place, std::size_t count) const {
  std::vector<Member> members;
  if (open_.empty()) return members;
  const std::size_t first = count < open_.size() ? place % open_.size() : 0;
  for (std::size_t i = 0; i < std::min(count, open_.size()); ++i) {
    members.push_back(process(open_[(first + i) % open_.size()]));
  }
  return members;
}

bool Roster::Entry::behind() const {
  return heartbeat && (heartbeat->peer_state == wire::PeerState::fresh ||
                       heartbeat->peer_state == wire::PeerState::syncing);
}

bool Roster::follows(const Member& member) const {
  return is_open(member) && !entries_.at(member.peer).behind();
}

bool Roster::is_behind(PeerId peer) const {
  const auto found = entries_.find(peer);
  return found != entries_.end() && found->second.open && found->second.behind();
}

std::uint64_t Roster::held_bytes() const {
  std::uint64_t bytes =
      entries_.size() * (sizeof(PeerId) + sizeof(Entry) + wire::kMostSiteBytes) + address_bytes_;
  for (const auto& [address, dial] : dials_) bytes += sizeof address + sizeof dial + address.size();
  return bytes;
}

std::optional<wire::Heartbeat> Roster::last_heartbeat(PeerId peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? std::nullopt : found->second.heartbeat;
}

Member Roster::process(PeerId peer) const {
  const auto found = entries_.find(peer);
  if (found == entries_.end()) return {peer, {}};
  return {peer, found->second.address, found->second.incarnation, found->second.site};
}

}  // namespace tw::swarm
