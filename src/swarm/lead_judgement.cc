// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "swarm/lead.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

/// Age of a plan before anybody in it counts as stalled: rounds can be much shorter than a pause of the
/// scheduler. With 0.5 s a round in which the leader was stopped took 4.0 s instead of 4.7 (equal4; a plan of
/// 1.7 s), one in which another peer was stopped as long as before: silent peers are found by their silence.
constexpr Duration kStallFloor = 2s;
constexpr int kDemandTimes = 3;
/// Guesses of what more senders do to a round stop here.
constexpr Duration kMoreAtMost = 10s;
/// How long a complaint stands before it is judged: a closed link reaches everybody within a round trip or
/// two.
constexpr Duration kGrace = 500ms;

/// After so long a peer that says it stands idle is sent its lease again, and one that does not give back
/// what it was asked for is asked again.
constexpr Duration kTellAgain = 1s;
/// A peer is given up for this round when its next microbatch takes so long: so many times its usual time,
/// and not less than the floor; or, before any was measured (models are compiled at the first one), this.
constexpr double kHungTimes = 10;
constexpr Duration kHungFloor = 10s;
constexpr Duration kHungCeiling = 600s;
constexpr Duration kHungAtFirst = 120s;

/// A peer that owes the later ones may itself wait for one that owes an earlier one.
constexpr Complaint kDebts[] = {Complaint::owes_contribution, Complaint::owes_partial, Complaint::owes_mean,
                                Complaint::owes_copy};

bool plays_a_part(const Plan& plan, PeerId peer) {
  const auto owns = [&](const Share& s) { return s.owner == peer && s.count > 0; };
  const auto owns_in = [&](const SitePlan& site) { return std::ranges::any_of(site.shares, owns); };
  const auto contributes = [&](const Contribution& c) { return c.peer == peer; };
  return std::ranges::any_of(plan.shares, owns) || std::ranges::any_of(plan.sites, owns_in) ||
         std::ranges::any_of(plan.draft.contributors, contributes);
}

}  // namespace

// ---- work that does not come

void Lead::follow_work(PeerId peer, const Progress& progress) {
  Progress told = progress;
  if (stage() == Stage::proposed)
    told.gave_back = false;  // the plan counts on it: the peer will do it after all
  book_.report(peer, told);
  std::uint64_t done = 0;
  for (const SlotProgress& slot : progress.slots) done += slot.done.count();
  Pace& pace = paces_[peer];
  if (done != pace.done || !book_.holds(peer)) pace.since = now_;
  pace.done = done;
  if (stage() != Stage::open) return;
  if (book_.is_recalled(peer)) {
    recall_again(peer);
  } else {
    lease_again(peer, progress);
  }
}

// Its answer does not come: the question, or the answer, was lost.
void Lead::recall_again(PeerId peer) {
  Pace& pace = paces_[peer];
  if (now_ - std::max(pace.recalled_at, pace.asked_at) < kTellAgain) return;
  pace.asked_at = now_;
  send(peer, Recall{head_.round + 1, ballot()});
}

// It stands idle although something is leased to it: the lease did not reach it in this form.
void Lead::lease_again(PeerId peer, const Progress& progress) {
  const bool idle =
      progress.wants_more && std::all_of(progress.slots.begin(), progress.slots.end(),
                                         [](const SlotProgress& slot) { return slot.held.empty(); });
  Pace& pace = paces_[peer];
  if (!idle || !counts(peer)) return;
  if (now_ - pace.leased_at < kTellAgain && !rarely(options_.rarely, "lead.lease_again")) return;
  SlotProgress open = book_.open_slot(peer);
  if (open.held.empty()) return;
  pace.leased_at = now_;
  send(peer, Lease{head_.round + 1, ballot(), open.slot, std::move(open.held)});
}

// Its links answer, but its gradients do not come: the others would wait for ever.
void Lead::give_up_on_hung_peers() {
  if (stage() != Stage::open) return;
  const bool alone = status_.present().size() < 2;
  for (const auto& [peer, pace] : paces_) {
    if (alone && status_.is_seated(peer)) continue;
    const bool recalled = book_.is_recalled(peer);
    const bool waited_for = recalled || (book_.holds(peer) && !book_.has_free());
    if (!waited_for || !counts(peer)) continue;
    const Duration waited = now_ - (recalled ? pace.recalled_at : pace.since);
    if (waited < hung_after(peer)) continue;
    leave_out(peer, "no gradient came from it for " + std::to_string(waited / 1s) + " s");
    return;
  }
}

Duration Lead::hung_after(PeerId peer) const {
  const double speed = book_.samples_per_s(peer);
  if (speed <= 0) return kHungAtFirst;
  const double usual_s = static_cast<double>(options_.lease.microbatch) / speed;  // by its own word
  return from_seconds(std::clamp(kHungTimes * usual_s, to_seconds(kHungFloor), to_seconds(kHungCeiling)));
}

// ---- who is left out

void Lead::leave_out(PeerId peer, const std::string& why) {
  if (!counts(peer)) return;
  status_.exclude(peer);
  proposer_.set_here(status_.counted());
  events_.push_back({now_, Phase::lost, head_.round + 1, peer, why});
  out(peer);
  advance();
}

// By it and about it.
void Lead::forget_complaints_of(PeerId peer) {
  complaints_.erase(peer);
  for (auto& [reporter, complaints] : complaints_) {
    complaints.unreachable.erase(peer);
    for (auto& [kind, suspects] : complaints.owes) suspects.erase(peer);
  }
  std::erase_if(slow_,
                [&](const auto& entry) { return entry.first.first == peer || entry.first.second == peer; });
}

void Lead::out(PeerId peer) {
  complaints_.erase(peer);
  if (resigned()) return;
  if (stage() == Stage::preparing || stage() == Stage::decided) return;
  if (stage() == Stage::proposed && !plays_a_part(*proposed(), peer)) return;
  if (stage() == Stage::proposed && !proposer_.voters().empty()) {
    // Somebody has the whole mean, so the contribution of the lost peer is in it everywhere: it counts.
    serve_sealed(*proposed(), proposer_.voters());
    return;
  }
  if (finishes()) {
    proposer_.resign();
    return;
  }
  give_out_again(peer);
}

// What it sends is worth nothing, but it is here: it does not contribute to this round nor reduce a share,
// but gets the mean and votes.
void Lead::refuse_work_of(PeerId peer, const std::string& why) {
  if (!counts(peer) || finishes() || resigned() || !status_.refuse(peer)) return;
  events_.push_back({now_, Phase::lost, head_.round + 1, peer, why});
  give_out_again(peer);
  advance();
}

// Others compute refused work again: it must not wait in the next round for ever.
void Lead::give_out_again(PeerId peer) {
  RangeSet again = book_.forget(peer);
  for (PeerId other : book_.peers()) {
    if (!counts(other))
      again.add(book_.forget(other));  // lost before, but counted as long as the mean was there
  }
  if (stage() == Stage::proposed) {
    book_.close_slots();
    proposer_.reopen();
    short_ = !status_.has_refused() && leaves_over();
  }
  if (!again.empty()) tell_of_reissue(again, peer);
}

void Lead::tell_of_reissue(const RangeSet& microbatches, std::optional<PeerId> lost) {
  Event event{now_, Phase::reissue, head_.round + 1, lost, to_string(microbatches)};
  event.numbers = {{"microbatches", static_cast<double>(microbatches.count())}};
  if (short_) event.numbers.emplace_back("next_round", 1);
  events_.push_back(std::move(event));
}

void Lead::on_report(PeerId from, const Report& report) {
  if (report.round != head_.round + 1 || !counts(from) || !counts(report.suspect)) return;
  if (stage() == Stage::preparing || stage() == Stage::decided) return;
  if (!status_.is_seated(from) && from != report.suspect)
    return;  // what a joiner misses, the members miss too
  switch (report.complaint) {
    case Complaint::not_finite:
      refuse_work_of(report.suspect, "its gradient is not finite");
      break;
    case Complaint::too_large:
      refuse_work_of(report.suspect, "its gradient is beyond the norm cap");
      break;
    case Complaint::unreachable:
      complaints_[from].unreachable.try_emplace(report.suspect, now_);
      break;
    case Complaint::owes_contribution:
      if (from == report.suspect) return refuse_work_of(from, "it has not done what is counted on");
      [[fallthrough]];
    case Complaint::owes_partial:
    case Complaint::owes_mean:
    case Complaint::owes_copy:
      complaints_[from].owes[report.complaint].insert_or_assign(report.suspect, now_);
      break;
    case Complaint::slow_contribution:
    case Complaint::slow_mean:
      note_slow(from, report);
      break;
    case Complaint::send_again:  // not for the leader
      break;
  }
}

// As long as rounds take, or as the lines demand (which may carry more than was ever seen). Joiners send, but
// do not reduce: the more of them there are, the more comes to each member.
Duration Lead::expected_reduce(const Plan& plan) const {
  std::set<PeerId> senders;
  for (const Contribution& c : plan.draft.contributors) senders.insert(c.peer);
  const std::size_t members = std::max<std::size_t>(1, status_.present().size());
  const Duration more = options_.expected_reduce *
                        static_cast<std::int64_t>(std::max(senders.size(), members)) /
                        static_cast<std::int64_t>(members);
  const Duration usual = std::max(options_.expected_reduce, std::min<Duration>(more, kMoreAtMost));
  const Duration demanded = from_seconds(options_.shares.seconds(plan, hands(plan)));
  return std::max(usual, std::min<Duration>(demanded, kDemandTimes * usual));
}

// ---- who is slow

void Lead::note_slow(PeerId from, const Report& report) {
  if (report.missing.ranges().size() > options_.segments) return;
  const auto [entry, first] = slow_.try_emplace({report.suspect, from});
  Slow& slow = entry->second;
  if (first) slow.since = now_;
  slow.last = now_;
  slow.contributes = report.complaint == Complaint::slow_contribution;
  slow.missing = report.missing;
}

// A peer with slow contributions makes others slow with their part of the mean.
std::optional<PeerId> Lead::slowest() const {
  std::optional<PeerId> slow_mean;
  for (const auto& [who, slow] : slow_) {
    const auto [suspect, reporter] = who;
    if (!counts(suspect) || !counts(reporter) || now_ - slow.last >= 2 * kGrace) continue;
    // Others may still complain; and what is not said again was said of an earlier plan.
    if (slow.last - slow.since < kGrace * 3 / 4) continue;
    if (slow.contributes) return suspect;
    if (!slow_mean) slow_mean = suspect;
  }
  return slow_mean;
}

// The part of its share that some peer lacks.
RangeSet Lead::lacking_of(PeerId slow) const {
  RangeSet missing, lacking;
  for (const auto& [who, word] : slow_) {
    if (who.first == slow) missing.add(word.missing);
  }
  for (const Share& share : proposed()->shares) {
    if (share.owner != slow) continue;
    RangeSet rest{Range{share.first, share.count}};
    rest.remove(missing);
    RangeSet part{Range{share.first, share.count}};
    part.remove(rest);
    lacking.add(part);
  }
  return lacking;
}

// It goes on to send what it owes; what others lack of its share is reduced by others. Once somebody has the
// whole mean, it comes from there: a contribution may be nowhere else any more.
void Lead::relieve(PeerId slow) {
  const RangeSet moves = lacking_of(slow);
  std::erase_if(slow_, [&](const auto& entry) { return entry.first.first == slow; });
  const std::set<PeerId> keepers = proposer_.voters();
  std::vector<Hand> hands = this->hands(*proposed());
  for (Hand& hand : hands) {
    hand.owns = hand.owns && hand.peer != slow && (keepers.empty() || keepers.contains(hand.peer));
  }
  if (moves.empty() || std::ranges::none_of(hands, &Hand::owns)) return;
  Plan plan = *proposed();
  plan.shares = options_.shares.move(plan.shares, moves, hands);
  for (Share& share : plan.shares) share.sealed = share.sealed || keepers.contains(share.owner);
  relieved_ = true;
  Event event{now_, Phase::wait, head_.round + 1, slow, text_of({Wait::Kind::relief, {slow}})};
  event.numbers = {{"segments", static_cast<double>(moves.count())}};
  events_.push_back(std::move(event));
  propose_again(std::move(plan));
}

std::optional<PeerId> Lead::stalled() const {
  if (stage() != Stage::proposed || now_ - planned_at_ < kStallFloor + expected_reduce() * 3 / 2)
    return std::nullopt;
  if (const std::optional<PeerId> late = missing_vote())
    return late;  // what it accuses others of did not help
  const auto stands = [&](const auto& entry) {
    return now_ - entry.second < 2 * kGrace && counts(entry.first);
  };
  for (const Complaint kind : kDebts) {
    for (const auto& [reporter, complaints] : complaints_) {
      const auto debts = complaints.owes.find(kind);
      if (!counts(reporter) || debts == complaints.owes.end()) continue;
      const auto found = std::ranges::find_if(debts->second, stands);
      if (found != debts->second.end()) return found->first;
    }
  }
  return std::nullopt;
}

// Nobody misses anything from it and most have the mean: what keeps it from having it is its own affair.
std::optional<PeerId> Lead::missing_vote() const {
  if (now_ - proposed_at_ < 2 * (kStallFloor + expected_reduce() * 3 / 2)) return std::nullopt;
  const auto misses = [&](PeerId peer) { return counts(peer) && !proposer_.has_vote(peer); };
  std::set<PeerId> others;  // some may have come after the call: with them another ballot succeeds
  for (PeerId peer : status_.present()) others.insert(peer);
  for (PeerId peer : proposed()->participants) {
    if (misses(peer)) others.erase(peer);
  }
  for (PeerId peer : proposed()->participants) {
    if (misses(peer) && (status_.is_quorum(others) || (!status_.is_seated(peer) && proposer_.votes() > 0)))
      return peer;
  }
  return std::nullopt;
}

// Where the majority hangs on it, its vote is needed more than its segments. When a plan of another leader is
// finished, whoever else has the mean serves them.
void Lead::give_up_segments_of(PeerId suspect) {
  std::set<PeerId> others;
  for (PeerId peer : status_.present()) others.insert(peer);
  others.erase(suspect);
  std::set<PeerId> keepers = proposer_.voters();
  keepers.erase(suspect);
  if (finishes() && !status_.is_quorum(others) && !keepers.empty()) return serve_sealed(*proposed(), keepers);
  const std::string why =
      proposer_.votes() == 0 ? "no segment came from it" : "no segment or vote came from it";
  if (status_.is_quorum(others) || status_.of(suspect) == PeerStatus::Status::refused) {
    leave_out(suspect, why);
  } else {
    refuse_work_of(suspect, why);
  }
}

void Lead::judge_complaints() {
  const auto position = [&](PeerId peer) {
    return std::find_if(head_.members.begin(), head_.members.end(),
                        [&](const Member& m) { return m.peer == peer; }) -
           head_.members.begin();
  };
  std::map<PeerId, int> accusers;
  for (const auto& [reporter, complaints] : complaints_) {
    for (const auto& [suspect, since] : complaints.unreachable) {
      if (now_ - since >= kGrace && counts(suspect) && counts(reporter)) ++accusers[suspect];
    }
  }
  if (!accusers.empty()) {
    // Where two accuse each other, the younger one goes.
    const auto worst = std::max_element(accusers.begin(), accusers.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.second, position(a.first)) < std::pair(b.second, position(b.first));
    });
    leave_out(worst->first, "no link between it and others");
    return;
  }
  if (const std::optional<PeerId> suspect = stalled()) return give_up_segments_of(*suspect);
  if (stage() != Stage::proposed || finishes() || resigned()) return;
  if (const std::optional<PeerId> suspect = slowest()) relieve(*suspect);
}

}  // namespace tw
