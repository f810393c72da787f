// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/membership.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/prng.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {
namespace {

using wire::Member;
using namespace std::chrono_literals;

/// A commit that no heartbeat confirms is believed this long: several ticks and a slow path.
constexpr Duration kCommitAlone = 2s;
/// If links are many, a newcomer hears of this many peers. The leader tells it of all.
constexpr std::size_t kSomePeers = 8;
/// If links are many, each peer tells another one of some of its links once in this many ticks.
constexpr std::uint64_t kGossipTicks = 16;
/// At most this many peers are remembered as gone, and all members beside them.
constexpr std::size_t kMostLost = 4096;
/// A member that never linked (the mesh is still being built) counts as alive for this long after a decision.
constexpr Duration kMeshing = 2s;
/// Time for a member's own process to link before another one with its id: longer than the longest pause
/// between two dials, shorter than a joiner waits for a taken id.
constexpr Duration kSeatIsKept = 6s;

std::uint64_t nanos_of(Instant t) { return static_cast<std::uint64_t>(t.time_since_epoch().count()); }

}  // namespace

Membership::Membership(const Member& self, std::vector<std::string> bootstrap)
    : self_(self), roster_(self_.peer, std::move(bootstrap)), heartbeats_(self_.peer) {}

// ---- links

void Membership::on_open(Instant now, const Member& peer, const wire::Marks& marks) {
  if (marks.founds) founder_ = peer;
  roster_.open(peer, marks.anchor);
  lost_.erase(peer.peer);
  stances_.forget(peer.peer);
  detector_.open(now, peer.peer);
  heartbeats_.open(peer.peer);
}

void Membership::on_close(Instant now, PeerId peer, const Members& members) {
  TW_CHECK(roster_.is_open(peer));
  roster_.close(now, peer);
  roster_.forget_strangers(members);
  lost_.insert(peer);
  if (lost_.size() > kMostLost) std::erase_if(lost_, [&](PeerId gone) { return !is_member(members, gone); });
  resends_.forget(peer);
  detector_.close(peer);
  holdback_.on_close(peer);
  heartbeats_.close(peer);
  fresh_.erase(peer);
  stances_.forget(peer);
}

bool Membership::may_link(Instant now, const Member& process, const Members& members) const {
  return names(members, process) || !barred_.bars(now, process);
}

std::vector<PeerId> Membership::squatters(const Members& before, const Members& members) {
  std::vector<PeerId> squatters;
  for (const Member& m : members) {
    const auto former = std::ranges::find(before, m.peer, &Member::peer);
    if (former != before.end() && !former->is(m)) barred_.supersede(*former);
    if (roster_.is_open(m.peer) && !roster_.is_open(m)) squatters.push_back(m.peer);
  }
  return squatters;
}

void Membership::bar(Instant now, PeerId squatter) {
  TW_CHECK(roster_.is_open(squatter));
  barred_.turn_away(now, now + kSeatIsKept, roster_.process(squatter));
}

// ---- what they say

wire::Heartbeat Membership::on_heartbeat(Instant now, PeerId from, const wire::Heartbeat& told,
                                         const History& history) {
  wire::Heartbeat heartbeat = told;
  const bool on_its_way = history.head() && told.peer_state == wire::PeerState::fresh &&
                          names(history.head()->members, roster_.process(from));
  if (on_its_way) heartbeat.peer_state = wire::PeerState::member;
  const bool was_behind = roster_.is_behind(from);
  roster_.heard(now, from, heartbeat);
  stances_.hear(from, heartbeat);
  holdback_.heard(now, from, heartbeat);
  detector_.expect(from, std::chrono::milliseconds(told.next_ms));
  if (was_behind && !roster_.is_behind(from)) resends_.ask(now, from);
  heads_[from] = heartbeat.head_record;
  if (heartbeat.echo_ns != 0) {
    const std::uint64_t left = heartbeat.echo_ns + heartbeat.echo_delay_ns;
    detector_.round_trip(now, from, Duration{static_cast<std::int64_t>(nanos_of(now) - left)});
  }
  return heartbeat;
}

void Membership::on_peers(PeerId from, const Members& told, const Members& members) {
  for (const Member& m : told) {
    const bool has_the_id_of_another = is_member(members, m.peer) && !names(members, m);
    if (!has_the_id_of_another) roster_.hear(from, m);
  }
}

void Membership::on_commit(Instant now, const wire::Rank& told) {
  if (now - told_by_commit_at_ < kCommitAlone && goes_before(told_by_commit_, told)) return;
  told_by_commit_ = told;
  told_by_commit_at_ = now;
}

// ---- rounds

void Membership::begin_round(Instant now, const wire::Record& record) {
  round_since_ = now;
  std::erase_if(lost_, [&](PeerId peer) { return !is_member(record.members, peer); });
  for (const Member& m : record.members) {
    roster_.learn(m);
    roster_.now_follows(m);
  }
  resends_.begin_round();
  std::erase_if(heads_, [&](const auto& head) { return !is_member(record.members, head.first); });
}

// ---- time

std::vector<Detector::Silence> Membership::step(Instant now, bool hurries) {
  detector_.hurry(hurries);
  return detector_.step(now);
}

std::optional<std::pair<PeerId, wire::Peers>> Membership::gossip(Instant now) const {
  const std::uint64_t dice = mix(self_.peer.value, nanos_of(now));
  if (roster_.open_peers().size() <= HeartbeatSchedule::kFewLinks || dice % kGossipTicks != 0)
    return std::nullopt;
  const PeerId to = roster_.linked(mix(dice, 1), 1).front().peer;
  return std::pair(to, wire::Peers{roster_.linked(mix(dice, 2), kSomePeers)});
}

void Membership::take_the_first_state(Instant now, const std::vector<Member>& members) {
  for (const Member& member : members) {
    if (roster_.is_open(member)) holdback_.begins(now, member.peer);
  }
}

std::vector<PeerId> Membership::hold_back(Instant now) {
  holdback_.step(now);
  const std::vector<PeerId> before = std::exchange(held_back_for_, holdback_.peers());
  std::vector<PeerId> added;
  for (PeerId peer : held_back_for_) {
    if (std::ranges::find(before, peer) == before.end()) added.push_back(peer);
  }
  return added;
}

// ---- answers

Membership::Members Membership::introductions(PeerId newcomer, std::optional<PeerId> leads,
                                              bool to_all) const {
  const bool all =
      roster_.open_peers().size() <= HeartbeatSchedule::kFewLinks || leads == self_.peer || to_all;
  if (all) return roster_.linked();
  Members some = roster_.linked(mix(self_.peer.value, newcomer.value), kSomePeers);
  if (leads) some.push_back(roster_.process(*leads));
  return some;
}

void Membership::address(wire::Heartbeat& beat, Instant now, PeerId to) const {
  beat.sent_ns = nanos_of(now);
  if (const std::optional<wire::Heartbeat> last = roster_.last_heartbeat(to)) {
    beat.echo_ns = last->sent_ns;
    beat.echo_delay_ns = static_cast<std::uint64_t>(roster_.heartbeat_age(now, to).count());
  }
  beat.next_ms = static_cast<std::uint32_t>(heartbeats_.interval(to) / 1ms);
}

Member Membership::process(PeerId peer) const { return peer == self_.peer ? self_ : roster_.process(peer); }

bool Membership::is_here(const Member& member) const { return member.is(self_) || roster_.follows(member); }

bool Membership::presumed_live(Instant now, PeerId peer) const {
  return !roster_.is_open(peer) && !lost_.contains(peer) && now - round_since_ < kMeshing;
}

bool Membership::is_meshed(Instant now, const Members& members) const {
  return now - round_since_ >= kMeshing ||
         std::ranges::all_of(members, [&](const Member& m) { return is_here(m); });
}

std::map<PeerId, std::uint64_t> Membership::live() const {
  std::map<PeerId, std::uint64_t> all = roster_.following();
  all[self_.peer] = self_.incarnation;
  return all;
}

// A non-member waits for them, too. If the missing process ran under this peer's own id, the members that are
// here are waited for: they go on without it after their patience.
std::vector<PeerId> Membership::missing_for_a_majority(const Members& members) const {
  std::vector<PeerId> missing;
  std::set<PeerId> here;
  for (const Member& m : members) {
    if (is_here(m)) {
      here.insert(m.peer);
    } else if (m.peer != self_.peer) {
      missing.push_back(m.peer);
    }
  }
  if (here.empty() || is_quorum(members, here)) return {};
  if (missing.empty()) missing.assign(here.begin(), here.end());
  return missing;
}

std::vector<PeerId> Membership::lacking(const Digest& record, const Members& members) const {
  const auto lacks = [&](PeerId peer) {
    const auto head = heads_.find(peer);
    return peer != self_.peer && (head == heads_.end() || head->second != record);
  };
  std::vector<PeerId> missing;
  for (const Member& m : members) {
    if (lacks(m.peer)) missing.push_back(m.peer);
  }
  // One that was no member of the last rounds may not have said yet that it fetches the state.
  const auto following = roster_.following();
  for (const PeerId peer : roster_.open_peers()) {
    const bool needs_it = roster_.fetches(peer) || following.contains(peer);
    if (needs_it && lacks(peer) && !is_member(members, peer)) missing.push_back(peer);
  }
  return missing;
}

wire::Rank Membership::best_told(Instant now) const {
  wire::Rank best = now - told_by_commit_at_ < kCommitAlone ? told_by_commit_ : wire::Rank{};
  for (const auto& [peer, incarnation] : roster_.following()) {
    const std::optional<wire::Heartbeat> last = roster_.last_heartbeat(peer);
    if (last && goes_before(rank_of(*last), best)) best = rank_of(*last);
  }
  return best;
}

std::uint64_t Membership::held_bytes() const {
  const std::size_t notes =
      barred_.size() + resends_.size() + lost_.size() + fresh_.size() + stances_.size() + heads_.size();
  return roster_.held_bytes() + notes * kNoteBytes;
}

}  // namespace tw::swarm
