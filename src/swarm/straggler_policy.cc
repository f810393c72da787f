// SPDX-License-Identifier: Apache-2.0
#include "swarm/straggler_policy.h"

#include <algorithm>

#include "base/check.h"

namespace tw::swarm {
namespace {

using wire::StallCause;
using namespace std::chrono_literals;
using Sentence = StragglerPolicy::Sentence;
using Verdict = StragglerPolicy::Verdict;

// ---- silent

constexpr Duration kSilent = 2s;  // docs/protocol.md
constexpr Duration kSilentInHurry = 1s;
constexpr double kSilentRoundTrips = 6;
constexpr double kSilentIntervals = 4;

// ---- slow

constexpr double kOverdueTimes = 1.5;
constexpr Duration kOverdueFloor = 500ms;

/// Least age of a plan at which a peer counts as stalled: a pause of the scheduler can be much longer than a
/// round. With 0.5 s, a round with a stopped leader took 4.0 s instead of 4.7 (equal4; a plan of 1.7 s). With
/// another stopped peer it took as long as before: silent peers are found by their silence.
constexpr Duration kStallFloor = 2s;
constexpr double kStallTimes = 1.5;
constexpr int kVoteTimes = 2;  // of what a stall takes

constexpr int kDemandTimes = 3;
/// Upper bound of the guess how much longer a round takes with more senders.
constexpr Duration kMoreAtMost = 10s;
/// A stall report stands this long before it is judged: a closed link is noticed everywhere within a round
/// trip or two.
constexpr Duration kGrace = 500ms;

constexpr Duration kOwingFloor = 500ms;
constexpr double kOwingRoundTrips = 3;
constexpr double kSlowTimes = 1.5;
constexpr double kSlowIsKnownTimes = 0.75;
constexpr Duration kSlowIsKnownFloor = 1s;

// ---- hung

/// A peer is given up for this round when its next microbatch takes kHungTimes its usual time, bounded by
/// floor and ceiling. Before the first measurement (models are compiled then), kHungAtFirst holds.
constexpr double kHungTimes = 10;
constexpr Duration kHungFloor = 10s;
constexpr Duration kHungCeiling = 600s;
constexpr Duration kHungAtFirst = 120s;

/// A peer with one of the later debts may itself wait for a peer with an earlier one.
constexpr StallCause kDebts[] = {StallCause::owes_contribution, StallCause::owes_site_sum,
                                 StallCause::owes_mean, StallCause::owes_copy};

/// At most a century, whatever a remote expects.
Duration multiple(Duration expected, double factor) {
  constexpr double kCentury = 3.2e18;
  return Duration{
      static_cast<Duration::rep>(std::min(factor * static_cast<double>(expected.count()), kCentury))};
}

// If the majority depends on it, its vote matters more than its segments. While a plan of another leader is
// finished, other peers that have the mean serve its segments.
Verdict sentence_of(PeerId stalled, const PeerStatus& peers, const Proposer& proposer) {
  std::set<PeerId> others(peers.present().begin(), peers.present().end());
  others.erase(stalled);
  std::set<PeerId> keepers = proposer.voters();
  keepers.erase(stalled);
  if (proposer.bound() && !peers.is_quorum(others) && !keepers.empty()) return {Sentence::replace, stalled};
  const std::string why =
      proposer.votes() == 0 ? "no segment came from it" : "no segment or vote came from it";
  const bool is_refused = peers.of(stalled) == PeerStatus::Status::refused;
  return {peers.is_quorum(others) || is_refused ? Sentence::exclude : Sentence::refuse, stalled, why};
}

}  // namespace

// ---- deadlines

Duration Deadline::sum() const { return floor + multiple(expected, factor); }

Duration Deadline::longer() const { return std::max(floor, multiple(expected, factor)); }

Duration silence_limit(Duration round_trip, Duration within, bool hurried) {
  const Duration floor = hurried ? kSilentInHurry : kSilent;
  return std::max(Deadline{round_trip, kSilentRoundTrips, floor}.longer(),
                  Deadline{within, kSilentIntervals, floor}.longer());
}

Duration overdue_after(Duration expected_reduce) {
  return Deadline{expected_reduce, kOverdueTimes, kOverdueFloor}.sum();
}

Duration stalled_after(Duration expected_reduce) {
  return Deadline{expected_reduce, kStallTimes, kStallFloor}.sum();
}

Duration vote_missing_after(Duration expected_reduce) {
  return Deadline{expected_reduce, kVoteTimes * kStallTimes, kVoteTimes * kStallFloor}.sum();
}

Duration hung_after(std::optional<Duration> usual) {
  if (!usual) return kHungAtFirst;
  return std::min<Duration>(Deadline{*usual, kHungTimes, kHungFloor}.longer(), kHungCeiling);
}

Duration owing_after(Duration round_trip) {
  return Deadline{round_trip, kOwingRoundTrips, kOwingFloor}.longer();
}

Duration slow_is_known_after(Duration expected_reduce) {
  return Deadline{expected_reduce, kSlowIsKnownTimes, kSlowIsKnownFloor}.longer();
}

Duration slow_after(Duration expected_reduce, double part) {
  return Deadline{expected_reduce, kSlowTimes * part}.longer();
}

Duration expected_reduce(Duration usual, Duration demanded, std::size_t senders, std::size_t members,
                         bool with_joiner) {
  TW_CHECK(members > 0);
  const Duration more =
      usual * static_cast<std::int64_t>(std::max(senders, members)) / static_cast<std::int64_t>(members);
  const Duration with_joiners = std::max(usual, std::min<Duration>(more, kMoreAtMost));
  // What was usual says nothing about the bandwidth of a joiner.
  const Duration most = with_joiner ? std::max<Duration>(kMoreAtMost, kDemandTimes * with_joiners)
                                    : kDemandTimes * with_joiners;
  return std::max(with_joiners, std::min(demanded, most));
}

// ---- what is said

std::optional<Verdict> StragglerPolicy::on_report(Instant now, PeerId from, const wire::StallReport& report) {
  const PeerId suspect = report.suspect;
  switch (report.cause) {
    case StallCause::not_finite:
      return Verdict{Sentence::refuse, suspect, "its gradient is not finite"};
    case StallCause::too_large:
      return Verdict{Sentence::refuse, suspect, "its gradient is beyond the norm cap"};
    case StallCause::unreachable:
      stalls_[from].unreachable.try_emplace(suspect, now);
      break;
    case StallCause::owes_contribution:
      if (from == suspect) return Verdict{Sentence::refuse, from, "it has not done what is counted on"};
      [[fallthrough]];
    case StallCause::owes_site_sum:
    case StallCause::owes_mean:
    case StallCause::owes_copy:
      stalls_[from].owes[report.cause].insert_or_assign(suspect, now);
      break;
    case StallCause::slow_contribution:
    case StallCause::slow_mean:
      note_slow(now, from, report);
      break;
    case StallCause::send_again:  // not for the leader
      break;
  }
  return std::nullopt;
}

void StragglerPolicy::note_slow(Instant now, PeerId from, const wire::StallReport& report) {
  if (report.missing.ranges().size() > segments_) return;
  const auto [entry, first] = slow_.try_emplace({report.suspect, from});
  Slow& slow = entry->second;
  if (first) slow.since = now;
  slow.last = now;
  slow.contributes = report.cause == StallCause::slow_contribution;
  slow.missing = report.missing;
}

void StragglerPolicy::planned(Instant now, bool again) {
  slow_.clear();
  proposed_at_ = now;
  if (again) return;
  planned_at_ = now;
  reliefs_ = 0;
}

void StragglerPolicy::relieved(Instant now) {
  if (++reliefs_ <= kReliefs) planned_at_ = now;
}

void StragglerPolicy::forget(PeerId peer) {
  stalls_.erase(peer);
  for (auto& [reporter, stalls] : stalls_) {
    stalls.unreachable.erase(peer);
    for (auto& [kind, suspects] : stalls.owes) suspects.erase(peer);
  }
  std::erase_if(slow_,
                [&](const auto& entry) { return entry.first.first == peer || entry.first.second == peer; });
}

void StragglerPolicy::forget_words_of(PeerId peer) { stalls_.erase(peer); }

std::size_t StragglerPolicy::notes() const {
  std::size_t notes = slow_.size();
  for (const auto& [reporter, stalls] : stalls_) {
    notes += 1 + stalls.unreachable.size();
    for (const auto& [kind, suspects] : stalls.owes) notes += suspects.size();
  }
  return notes;
}

// ---- judgement

std::optional<Verdict> StragglerPolicy::judge(Instant now, const PeerStatus& peers,
                                              const Proposer& proposer) {
  if (const std::optional<PeerId> suspect = unreachable(now, peers))
    return Verdict{Sentence::exclude, *suspect, "no link between it and others"};
  if (proposer.stage() != Proposer::Stage::proposed) return std::nullopt;
  if (const std::optional<PeerId> suspect = stalled(now, peers, proposer))
    return sentence_of(*suspect, peers, proposer);
  if (proposer.bound() || proposer.resigned()) return std::nullopt;
  const std::optional<PeerId> slow = slowest(now, peers);
  if (!slow) return std::nullopt;
  RangeSet lacking = lacking_of(*slow, proposer.plan()->shares);
  std::erase_if(slow_, [&](const auto& entry) { return entry.first.first == *slow; });
  return Verdict{Sentence::relieve, *slow, {}, std::move(lacking)};
}

// If two accuse each other, the later one in member order goes.
std::optional<PeerId> StragglerPolicy::unreachable(Instant now, const PeerStatus& peers) const {
  const auto position = [&](PeerId peer) {
    return std::ranges::find(peers.members(), peer, &wire::Member::peer) - peers.members().begin();
  };
  std::map<PeerId, int> accusers;
  for (const auto& [reporter, stalls] : stalls_) {
    for (const auto& [suspect, since] : stalls.unreachable) {
      if (now - since >= kGrace && peers.counts(suspect) && peers.counts(reporter)) ++accusers[suspect];
    }
  }
  if (accusers.empty()) return std::nullopt;
  return std::ranges::max_element(accusers,
                                  [&](const auto& a, const auto& b) {
                                    return std::pair(a.second, position(a.first)) <
                                           std::pair(b.second, position(b.first));
                                  })
      ->first;
}

std::optional<PeerId> StragglerPolicy::stalled(Instant now, const PeerStatus& peers,
                                               const Proposer& proposer) const {
  const Instant due = planned_at_ + stalled_after(from_seconds(proposer.plan()->expected_s));
  if (now < due) return std::nullopt;
  if (const std::optional<PeerId> late = missing_vote(now, peers, proposer))
    return late;  // its own reports about others did not help
  // Older reports may be outdated; current ones are repeated while nothing comes.
  const auto stands = [&](const auto& entry) {
    return entry.second >= due && now - entry.second < 2 * kGrace && peers.counts(entry.first);
  };
  for (const StallCause kind : kDebts) {
    // The report that names the cause may come later.
    if (kind != StallCause::owes_contribution && now - due < kReportAgain + kGrace) break;
    for (const auto& [reporter, stalls] : stalls_) {
      const auto debts = stalls.owes.find(kind);
      if (!peers.counts(reporter) || debts == stalls.owes.end()) continue;
      const auto found = std::ranges::find_if(debts->second, stands);
      if (found != debts->second.end()) return found->first;
    }
  }
  return std::nullopt;
}

// No peer misses anything from it, and most have the mean: only its own trouble keeps it from voting.
std::optional<PeerId> StragglerPolicy::missing_vote(Instant now, const PeerStatus& peers,
                                                    const Proposer& proposer) const {
  const wire::Plan& plan = *proposer.plan();
  if (now - proposed_at_ < vote_missing_after(from_seconds(plan.expected_s))) return std::nullopt;
  const auto misses = [&](PeerId peer) { return peers.counts(peer) && !proposer.has_vote(peer); };
  // Some members may have come after the call: with them another ballot succeeds.
  std::set<PeerId> others(peers.present().begin(), peers.present().end());
  for (PeerId peer : plan.participants) {
    if (misses(peer)) others.erase(peer);
  }
  for (PeerId peer : plan.participants) {
    const bool can_do_without = peers.is_quorum(others) || (!peers.is_seated(peer) && proposer.votes() > 0);
    if (misses(peer) && can_do_without) return peer;
  }
  return std::nullopt;
}

// Slow contributions of a peer also slow down the shares of others, so they are judged first.
std::optional<PeerId> StragglerPolicy::slowest(Instant now, const PeerStatus& peers) const {
  std::optional<PeerId> slow_mean;
  for (const auto& [who, slow] : slow_) {
    const auto [suspect, reporter] = who;
    if (!peers.counts(suspect) || !peers.counts(reporter) || now - slow.last >= 2 * kGrace) continue;
    // Other reports may follow, and a report that is not repeated was about an earlier plan.
    if (slow.last - slow.since < kGrace * 3 / 4) continue;
    if (slow.contributes) return suspect;
    if (!slow_mean) slow_mean = suspect;
  }
  return slow_mean;
}

// The part of its share that any peer lacks.
RangeSet StragglerPolicy::lacking_of(PeerId slow, const std::vector<wire::Share>& shares) const {
  RangeSet missing, lacking;
  for (const auto& [who, word] : slow_) {
    if (who.first == slow) missing.add(word.missing);
  }
  for (const wire::Share& share : shares) {
    if (share.owner != slow) continue;
    RangeSet rest{Range{share.first, share.count}};
    rest.remove(missing);
    RangeSet part{Range{share.first, share.count}};
    part.remove(rest);
    lacking.add(part);
  }
  return lacking;
}

std::optional<Verdict> StragglerPolicy::judge_work(const PeerStatus& peers,
                                                   const std::vector<Awaited>& awaited) {
  const bool alone = peers.present().size() < 2;
  for (const Awaited& a : awaited) {
    if ((alone && peers.is_seated(a.peer)) || !peers.counts(a.peer)) continue;
    if (a.waited < hung_after(a.usual)) continue;
    const std::string why = "no gradient came from it for " + std::to_string(a.waited / 1s) + " s";
    return Verdict{Sentence::exclude, a.peer, why};
  }
  return std::nullopt;
}

}  // namespace tw::swarm
