// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/liveness_checkers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "swarm/ballots/quorum.h"

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kUnnamedWait = 5s;

// What the protocol takes beside the work itself (swarm/members/detector.cc, swarm/members/roster.cc,
// swarm/swarm.cc, swarm/lead.cc).
constexpr Duration kSilence = 2s;  // before a silent peer is out: max(2 s, 6 round trips)
constexpr int kSilenceRoundTrips = 6;
constexpr Duration kSteps = 1s;    // ticks of the detector and the swarm, grace before complaints are judged
constexpr Duration kRedial = 5s;   // the longest pause between two attempts to reach a peer
constexpr Duration kMeshing = 2s;  // a member that was never linked counts as alive so long
constexpr Duration kYield = 2s;    // who has lost the lead leaves it to the other so long
constexpr Duration kStall = 2s;    // of a plan before a peer counts as stalled, beside 1.5 usual ones

Duration detection(const Rules& rules) {
  return std::max<Duration>(kSilence, kSilenceRoundTrips * rules.round_trip) + kSteps;
}

/// The run is over, and this peer is no member.
bool is_left_behind(const Ledger& ledger, PeerId peer) {
  const wire::Record* newest = ledger.newest();
  return newest != nullptr && newest->last && !has_member(*newest, peer);
}

std::string wait_of(const Survivor& survivor) {
  const std::string text = text_of(survivor.view.waiting);
  return text.empty() ? "it does not say what it waits for" : text;
}

}  // namespace

Instant Conditions::undisturbed_since(Instant from, Instant now) const {
  const wire::Record* newest = ledger_.newest();
  if (newest == nullptr || newest->last || rules_.round_time == Duration{}) return kNever;
  if (!census_.has_majority_of(*newest, now)) return kNever;
  // What is decided next may yet be that record itself: those who knew it may be gone.
  const wire::Record* before = ledger_.find(newest->parent);
  if (before != nullptr && !census_.has_majority_of(*before, now)) return kNever;
  return std::max({from, window_.quiet_from(), census_.last_gone(now)});
}

Duration GoesOn::limit(const Rules& rules) {
  return detection(rules) + kRedial + kYield + kStall + rules.round_time * 9 / 2;
}

void GoesOn::on_calm(Instant at) {
  conditions_.on_calm(at);
  since_ = at;
  newest_ = ledger_.newest();
}

void GoesOn::on_strike(const Strike& strike) {
  conditions_.on_strike(strike);
  if (strike.kind == FaultKind::twin) shared_.insert(strike.victims.begin(), strike.victims.end());
}

void GoesOn::on_look(const Survivor& survivor) {
  const Instant now = survivor.now;
  conditions_.on_look(survivor);
  const wire::Record* newest = ledger_.newest();
  if (since_ == kNever || newest == nullptr || told_) return;
  if (std::exchange(newest_, newest) != newest) since_ = now;
  const Instant since = conditions_.undisturbed_since(since_, now);
  if (since == kNever || now - since <= limit(rules_)) return;
  told_ = true;
  violated(fmt::format("no round was committed after round {} for {:.1f} s without faults; peer {}: {}",
                       newest->round, to_seconds(now - since), survivor.peer.value, wait_of(survivor)));
}

void GoesOn::on_end(std::span<const Survivor> survivors) {
  for (const Survivor& survivor : survivors) {
    if (survivor.view.finished || is_left_behind(ledger_, survivor.peer)) continue;
    if (shared_.contains(survivor.peer)) continue;
    violated(fmt::format("peer {} has not come beyond round {}; {}", survivor.peer.value, survivor.view.round,
                         wait_of(survivor)));
  }
}

Duration JoinersGetIn::limit(const Rules& rules) {
  // The run waits for a joiner from the second time that it falls behind: it may take the state twice.
  return detection(rules) + kRedial + rules.transfer_time * 2 + rules.round_time * 2;
}

void JoinersGetIn::on_event(PeerId peer, const world::Event& event) {
  const auto* restored = event.as<event::Restore>();
  const bool takes_state = restored && restored->digest.empty();
  if ((event.as<event::Start>() || takes_state) && ledger_.newest() != nullptr)
    outside_.try_emplace(peer, now_);
}

void JoinersGetIn::on_commit(const Sighting& s) {
  std::erase_if(outside_, [&](const auto& entry) { return has_member(s.record, entry.first); });
}

void JoinersGetIn::on_look(const Survivor& survivor) {
  conditions_.on_look(survivor);
  now_ = survivor.now;
  const auto outside = outside_.find(survivor.peer);
  if (outside == outside_.end()) return;
  const Instant since = conditions_.undisturbed_since(outside->second, survivor.now);
  const bool over = survivor.view.finished || !survivor.view.failure.empty();
  if (!over && (since == kNever || survivor.now - since <= limit(rules_))) return;
  outside_.erase(outside);
  if (over) return;
  violated(fmt::format("peer {} is no member {:.1f} s after it came, without faults; {}", survivor.peer.value,
                       to_seconds(survivor.now - since), wait_of(survivor)));
}

Duration LeaderIsReplaced::limit(const Rules& rules) {
  return detection(rules) + kMeshing + rules.round_time * 3;
}

void LeaderIsReplaced::on_event(PeerId peer, const world::Event& event) {
  if (event.phase() == world::Phase::lead) leader_ = peer;
}

void LeaderIsReplaced::on_strike(const Strike& strike) {
  conditions_.on_strike(strike);
  has_twin_ = has_twin_ || strike.kind == FaultKind::twin;
  const wire::Record* newest = ledger_.newest();
  const bool led = std::find(strike.victims.begin(), strike.victims.end(), leader_) != strike.victims.end();
  if (led && row_of(strike.kind).ends_process() && newest != nullptr) vacancy_ = {leader_, strike.at, newest};
}

void LeaderIsReplaced::on_look(const Survivor& survivor) {
  const Instant now = survivor.now;
  conditions_.on_look(survivor);
  const wire::Record* newest = ledger_.newest();
  if (vacancy_ && newest != vacancy_->newest) vacancy_.reset();
  if (!vacancy_) return;
  const Instant since = conditions_.undisturbed_since(vacancy_->since, now);
  if (since == kNever || now - since <= (has_twin_ ? GoesOn::limit(rules_) : limit(rules_))) return;
  violated(fmt::format("peer {} led round {} and died; {:.1f} s later no round was committed; peer {}: {}",
                       vacancy_->leader.value, vacancy_->newest->round + 1, to_seconds(now - since),
                       survivor.peer.value, wait_of(survivor)));
  vacancy_.reset();
}

void NobodyFails::on_strike(const Strike& strike) {
  if (strike.kind == FaultKind::twin) shared_.insert(strike.victims.begin(), strike.victims.end());
}

bool NobodyFails::has_lost_its_id(const Survivor& survivor) const {
  if (!shared_.contains(survivor.peer)) return false;
  const wire::Record* record = ledger_.newest();
  while (record != nullptr && !swarm::is_member(record->members, survivor.peer))
    record = ledger_.find(record->parent);
  return record != nullptr && !swarm::names(record->members, {survivor.peer, {}, survivor.incarnation});
}

void NobodyFails::on_look(const Survivor& survivor) {
  if (survivor.view.failure.empty() || is_left_behind(ledger_, survivor.peer)) return;
  if (has_lost_its_id(survivor)) return;
  violated(fmt::format("peer {} at round {}: {}", survivor.peer.value, survivor.view.round,
                       survivor.view.failure));
}

void WaitsAreNamed::on_look(const Survivor& survivor) {
  const swarm::Wait& wait = survivor.view.waiting;
  if (survivor.view.finished || told_.contains(survivor.peer)) return;
  const bool for_itself = wait.peers == std::vector{survivor.peer} && !is_own_work(wait.kind);
  const bool for_nobody = wait.kind == swarm::Wait::Kind::nothing || for_itself;
  if (!for_nobody) for_nobody_since_.erase(survivor.peer);
  if (!for_nobody && is_named(wait)) return;
  // What it waited for before counts not: it may have found something to do just now.
  const Instant since = for_nobody_since_.try_emplace(survivor.peer, survivor.now).first->second;
  const bool too_long = survivor.idle > kUnnamedWait && survivor.now - since > kUnnamedWait;
  if (is_named(wait) && !too_long) return;
  told_.insert(survivor.peer);
  violated(fmt::format("peer {} at round {} did nothing for {:.1f} s and does not say for whom it waits: {}",
                       survivor.peer.value, survivor.view.round, to_seconds(survivor.idle),
                       wait_of(survivor)));
}

void NobodyIsBlamed::on_strike(const Strike& strike) {
  switch (strike.kind) {
    case FaultKind::stop:
      stopped_.insert(strike.victims.begin(), strike.victims.end());
      break;
    case FaultKind::away:
    case FaultKind::join:
    case FaultKind::memory_flip:
    case FaultKind::forge_mean:
      break;
    default:
      disturbed_ = true;
  }
}

void NobodyIsBlamed::on_event(PeerId peer, const world::Event& event) {
  const auto* lost = event.as<event::Lost>();
  if (disturbed_ || !lost || !event.peer || stopped_.contains(*event.peer)) return;
  if (lost->silent_s.value_or(0) <= to_seconds(kSilence)) return;
  violated(fmt::format("round {}: peer {} hangs up on peer {}, \"{}\", which runs and can be reached",
                       event.round, peer.value, event.peer->value, event.why));
}

}  // namespace tw::sim
