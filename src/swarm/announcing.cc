// SPDX-License-Identifier: Apache-2.0
#include "swarm/announcing.h"

#include <algorithm>
#include <utility>

#include "swarm/ballots/quorum.h"

namespace tw::swarm {
namespace {

using wire::Member;
using wire::PeerState;

/// A computing peer reports its progress this often: a peer without progress is given up.
constexpr Duration kTellProgress = std::chrono::seconds(1);

/// The grain that others hear of. most: 0, not known yet: leases of a power of two that divides the round,
/// so that nothing odd, such as a batch of one sample, is left of them when it is known.
std::uint64_t known_grain(std::uint64_t most, std::uint64_t microbatches) {
  if (most > 0) return std::min(most, microbatches);
  constexpr std::uint64_t kLeasesOfARound = 8;
  std::uint64_t grain = 1;
  while (grain * 2 * kLeasesOfARound <= microbatches && microbatches % (grain * 2) == 0) grain *= 2;
  return grain;
}

// A joiner gets work once all peers that reduce it can be reached.
bool is_knotted(const SwarmCore& core) {
  return core.part.peer_state() != PeerState::ready || core.membership.is_meshed(core.now, core.members());
}

}  // namespace

Announcing::Announcing(SwarmCore& core, Leading& leading) : core_(core), leading_(leading) {
  computes_at_once(core_.options.grain);
}

void Announcing::computes_at_once(std::uint64_t most) {
  const TargetBatch& lease = core_.options.lease;
  own_.grain = known_grain(most, most > 0 ? lease.most_microbatches() : lease.microbatches());
}

void Announcing::computed(double samples_per_s, const std::string& settings) {
  own_.samples_per_s = samples_per_s;
  own_.settings = settings;
}

bool Announcing::set_presence(wire::Presence presence) {
  return std::exchange(own_.presence, presence) != presence;
}

void Announcing::catching_up(Instant now, const wire::CatchingUp& how) {
  const bool news =
      how.lost_ground > own_.catching_up.lost_ground && how.lost_ground >= Holdback::kLostGround;
  own_.catching_up = how;
  if (!news) return;
  core_.wake(now);
  tell_peer_state();
}

void Announcing::end_run(Instant now) {
  if (core_.run_end) return;
  core_.wake(now);
  core_.run_end = {core_.options.self.peer, core_.options.rounds};
  tell_peer_state();
}

void Announcing::tell_peer_state() {
  told_state_ = core_.now;
  const PeerId self = core_.options.self.peer;
  const wire::Heartbeat own = heartbeat_to(self);
  core_.membership.hear(self, own);
  if (Lead* lead = leading_.lead()) lead->on_heartbeat(self, own);
  for (PeerId peer : core_.membership.roster().open_peers()) core_.send(peer, heartbeat_to(peer));
}

wire::Heartbeat Announcing::heartbeat_to(PeerId peer) const {
  wire::Heartbeat beat;
  beat.peer_state = core_.part.peer_state();
  if (const std::optional<wire::Record>& head = core_.head()) {
    beat.head = head->round;
    beat.head_record = core_.history.digest();
    beat.majority_samples = head->majority_samples;
    beat.samples = head->samples_total();
    beat.had_company = head->had_company;
    beat.restarts = head->restarts;
  }
  if (beat.peer_state == PeerState::syncing) beat.catching_up = own_.catching_up;
  beat.outlook = core_.farewell.outlook();
  beat.presence = own_.presence;
  beat.run_end = core_.run_end;
  core_.membership.address(beat, core_.now, peer);
  // A peer is taken for lost after four times its announced interval.
  const auto quiet_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(core_.farewell.silence_ahead(core_.now) / 2);
  beat.next_ms = std::max(beat.next_ms, static_cast<std::uint32_t>(quiet_ms.count()));
  return beat;
}

wire::Progress Announcing::progress() const {
  const Acceptor& acceptor = core_.acceptor;
  const Farewell& farewell = core_.farewell;
  wire::Progress progress;
  progress.round = core_.head() ? core_.head()->round + 1 : 0;
  progress.ballot = acceptor.promised();
  progress.parameters = core_.history.parameters().value_or(Digest{});
  progress.samples_per_s = own_.samples_per_s;
  progress.grain = own_.grain;
  progress.slots = core_.work.progress();
  progress.wants_more = core_.history.parameters() && core_.work.wants_more() && !core_.part.leaves() &&
                        own_.is_here() && is_knotted(core_);
  progress.leaving = core_.part.leaves();
  progress.called = acceptor.averages();
  progress.moved_on = core_.has_moved_on();
  progress.bandwidth = own_.bandwidth;
  progress.outlook = farewell.outlook();
  progress.leaves_in_s = farewell.leaves_in_s(core_.now);
  if (!farewell.gave_seat()) progress.seats = acceptor.seats();  // they went with its own
  progress.gave_seat = farewell.gave_seat();
  progress.settings = own_.settings;
  return progress;
}

void Announcing::send_progress(bool gave_back) {
  send_progress(gave_back, core_.membership.roster().open_peers());
}

void Announcing::send_progress(bool gave_back, const std::vector<PeerId>& where_unled) {
  if (core_.part.ended()) return;
  if (!core_.history.parameters()) {  // it can tell nothing yet; a recall is answered all the same
    if (gave_back) owes_answer_ = core_.work.round();
    return;
  }
  wire::Progress now = progress();
  now.gave_back = gave_back || std::exchange(owes_answer_, 0) == now.round;
  told_progress_ = core_.now;
  const PeerState state = core_.part.peer_state();
  if (core_.part.is_member()) {
    if (const std::optional<PeerId> leads = core_.leader()) {
      tell_failures(*leads);
      core_.send(*leads, now);
    }
  } else if (state == PeerState::ready || state == PeerState::fresh) {
    for (PeerId peer : where_unled) {
      tell_failures(peer);
      core_.send(peer, now);
    }
  }
}

void Announcing::tell_failures(PeerId to) {
  const wire::Failures& failures = core_.work.failures();
  if (!failures.microbatches.empty() && core_.of_this_round(core_.work.round())) core_.send(to, failures);
}

void Announcing::say_vote() {
  if (core_.farewell.gave_seat()) return;
  if (const std::optional<wire::Vote> vote = core_.acceptor.vote()) {
    core_.send(ballot_owner(core_.members(), vote->ballot).peer, *vote);
  }
}

// The leader, and its successor.
std::set<PeerId> Announcing::in_front() const {
  std::set<PeerId> front;
  const std::optional<PeerId> leads = core_.leader();
  if (!leads) return front;
  front.insert(*leads);
  const auto successor = std::ranges::find_if(
      core_.members(), [&](const Member& m) { return m.peer != *leads && core_.membership.is_here(m); });
  if (successor != core_.members().end()) front.insert(successor->peer);
  return front;
}

std::vector<PeerId> Announcing::tick() {
  std::vector<PeerId> due = core_.membership.tick(in_front());
  for (PeerId peer : due) core_.send(peer, heartbeat_to(peer));
  const bool lost_ground =
      core_.part.peer_state() == PeerState::syncing && own_.catching_up.lost_ground >= Holdback::kLostGround;
  if (lost_ground && core_.now - told_state_ >= kTellProgress)
    tell_peer_state();  // the leader, whoever it is, has to know
  return due;
}

void Announcing::tell_again(const std::vector<PeerId>& where_unled) {
  const bool hungry = core_.work.idle() && core_.work.wants_more();
  const bool tells = !core_.work.idle() && core_.now - told_progress_ >= kTellProgress;
  if (hungry || tells) send_progress(false, where_unled);
  say_vote();  // once more: the leader may have lost the first one with all it knew
}

}  // namespace tw::swarm
