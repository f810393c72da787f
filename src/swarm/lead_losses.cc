// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/peer_name.h"
#include "swarm/lead.h"

namespace tw::swarm {
namespace {

bool contributes_or_reduces(const wire::Plan& plan, PeerId peer) {
  const auto owns = [&](const wire::Share& s) { return s.owner == peer && s.count > 0; };
  const auto owns_in = [&](const wire::SitePlan& site) { return std::ranges::any_of(site.shares, owns); };
  const auto contributes = [&](const wire::Contribution& c) { return c.peer == peer; };
  return std::ranges::any_of(plan.shares, owns) || std::ranges::any_of(plan.sites, owns_in) ||
         std::ranges::any_of(plan.draft.contributors, contributes);
}

}  // namespace

// ---- work that does not come

void Lead::on_failures(PeerId from, const wire::Failures& failures) {
  if (failures.round != head_.round + 1 || !status_.is_reachable(from) || !status_.has_room_for(from)) return;
  leasing_.on_failures(from, failures);
  advance();
}

// Before all is given up, a new ballot asks peers that are out of the round or refused. On a side without a
// majority, peers of the other side may have what is missing here.
void Lead::give_up_on_hopeless_work() {
  if (!minority_ && !status_.has_quorum()) return;
  if (leasing_.has_moved_on() && !leasing_.contributions(status_).empty()) return;  // a later round tries it
  std::set<PeerId> now, later;
  for (const PeerId peer : status_.workers()) {
    if (status_.leaves(peer)) continue;
    later.insert(peer);
    if (status_.of(peer) != PeerStatus::Status::refused) now.insert(peer);
  }
  for (const PeerId peer : status_.uncounted())
    if (!status_.leaves(peer)) later.insert(peer);
  const std::optional<LeaseBook::Hopeless> found = leasing_.hopeless(later);
  if (!found && leasing_.hopeless(now)) return proposer_.resign();
  if (!found || !hopeless_.empty()) return;
  if (leasing_.lets_skip(now_, status_, found->microbatch)) return send_leases();
  std::erase_if(later, [&](PeerId peer) { return !leasing_.may_skip(peer, found->microbatch); });
  const auto will_ask = [&](PeerId peer) { return status_.eligible().contains(peer); };
  if (std::ranges::any_of(later, will_ask)) return;  // it is busy, or owes the answer to a recall
  if (!later.empty()) return proposer_.resign();
  std::string peers;
  for (const PeerId peer : found->failed) peers += (peers.empty() ? "" : ", ") + peer_name(peer);
  hopeless_ = fmt::format("no peer can compute a sample of round {} (peers that tried: {}): {}",
                          head_.round + 1, peers, found->why);
}

// ---- peers that leave before the round ends

void Lead::let_leavers_go() {
  if (proposer_.stage() != Stage::open || resigned()) return;
  for (wire::Envelope& order : hand_overs_.step(now_, status_, leasing_, options_.expected_reduce))
    messages_.push_back(std::move(order));
}

// ---- who is left out

void Lead::leave_out(PeerId peer, const std::string& why) {
  if (!status_.counts(peer)) return;
  status_.exclude(peer);
  proposer_.set_here(status_.counted());
  events_.push_back({now_, head_.round + 1, peer, why, event::Lost{}});
  out(peer);
  advance();
}

void Lead::out(PeerId peer) {
  stragglers_.forget_words_of(peer);
  if (resigned()) return;
  if (proposer_.stage() == Stage::preparing || proposer_.stage() == Stage::decided) return;
  if (proposer_.stage() == Stage::proposed && !contributes_or_reduces(*proposer_.plan(), peer)) return;
  if (proposer_.stage() == Stage::proposed && !proposer_.voters().empty()) {
    // Some peer has the whole mean, so the lost peer's contribution is in it everywhere: it counts.
    serve_sealed(*proposer_.plan(), proposer_.voters());
    return;
  }
  if (finishes()) {
    proposer_.resign();
    return;
  }
  give_out_again(peer);
}

void Lead::give_out_again(PeerId peer) {
  TW_CHECK(proposer_.stage() == Stage::open || proposer_.stage() == Stage::proposed);
  const RangeSet again = leasing_.forget(status_, peer);
  if (proposer_.stage() == Stage::proposed) {
    proposer_.reopen();
    leasing_.reopen(status_);
  }
  if (!again.empty()) report_reissue(again, peer);
}

void Lead::report_reissue(const RangeSet& microbatches, std::optional<PeerId> lost) {
  events_.push_back(
      {.at = now_,
       .round = head_.round + 1,
       .peer = lost,
       .why = to_string(microbatches),
       .fact = event::Reissue{.microbatches = microbatches.count(), .next_round = leasing_.leaves_rest()}});
}

void Lead::on_report(PeerId from, const wire::StallReport& report) {
  if (report.step.round != head_.round + 1 || !status_.counts(from) || !status_.counts(report.suspect))
    return;
  if (proposer_.stage() == Stage::preparing || proposer_.stage() == Stage::decided) return;
  if (!status_.is_seated(from) && from != report.suspect)
    return;  // members miss the same segments as a joiner
  if (const auto verdict = stragglers_.on_report(now_, from, report)) carry_out(*verdict);
}

void Lead::carry_out(const StragglerPolicy::Verdict& verdict) {
  using Sentence = StragglerPolicy::Sentence;
  switch (verdict.sentence) {
    case Sentence::exclude:
      return leave_out(verdict.peer, verdict.why);
    case Sentence::refuse:
      // Its results are useless, but it is here: it neither contributes to this round nor reduces a share,
      // but gets the mean and votes.
      if (!status_.counts(verdict.peer) || finishes() || resigned() || !status_.refuse(verdict.peer)) return;
      events_.push_back(
          {now_, head_.round + 1, verdict.peer, verdict.why, event::Lost{.cause = event::Cause::verdict}});
      give_out_again(verdict.peer);
      return advance();
    case Sentence::replace: {
      TW_CHECK(proposer_.stage() == Stage::proposed);
      std::set<PeerId> keepers = proposer_.voters();
      keepers.erase(verdict.peer);
      return serve_sealed(*proposer_.plan(), keepers);
    }
    case Sentence::relieve:
      return relieve(verdict.peer, verdict.segments);
  }
}

void Lead::relieve(PeerId slow, const RangeSet& moves) {
  TW_CHECK(proposer_.stage() == Stage::proposed);
  wire::Plan plan = *proposer_.plan();
  if (!planning_.relieve(plan, slow, moves, proposer_.voters())) return;
  events_.push_back({.at = now_,
                     .round = head_.round + 1,
                     .peer = slow,
                     .why = text_of({Wait::Kind::relief, {slow}}),
                     .fact = event::Wait{.segments = moves.count()}});
  propose(std::move(plan), true);
  stragglers_.relieved(now_);
}

}  // namespace tw::swarm
