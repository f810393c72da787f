// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/proposer.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

bool may_follow(Proposer::Stage now, Proposer::Stage next) {
  using Stage = Proposer::Stage;
  switch (next) {
    case Stage::preparing:
      return false;
    case Stage::open:
      return now == Stage::preparing || now == Stage::proposed;
    case Stage::bound:
      return now == Stage::preparing;
    case Stage::proposed:
      return now == Stage::open || now == Stage::bound || now == Stage::proposed;
    case Stage::decided:
      return now == Stage::proposed;
  }
  return false;
}

/// True if both make the same record, except for its mark and its mean. A minority's record names the members
/// that are here.
bool finishes(const wire::Record& draft, const wire::Record& voted_for) {
  return draft.round == voted_for.round && draft.parent == voted_for.parent &&
         (draft.minority || draft.members == voted_for.members) &&
         draft.contributors == voted_for.contributors && draft.left == voted_for.left &&
         draft.ahead == voted_for.ahead;
}

bool voted_for_mean_of(const wire::Promise& promise, const wire::Accepted& accepted) {
  return promise.accepted && promise.accepted->mean == accepted.mean &&
         contribution_set(promise.accepted->plan.draft) == contribution_set(accepted.plan.draft);
}

}  // namespace

Proposer::Proposer(const wire::Record& head, Ballot ballot)
    : members_(head.members),
      round_(head.round + 1),
      ballot_(ballot),
      stage_(ballot == 0 ? Stage::open : Stage::preparing) {}

void Proposer::enter(Stage next) {
  TW_CHECK(may_follow(stage_, next));
  TW_CHECK(next != Stage::bound || bound_.has_value());
  TW_CHECK(next != Stage::open || !bound_.has_value());
  TW_CHECK(next != Stage::proposed || plan_ != nullptr);
  TW_CHECK(decision_.has_value() == (next == Stage::decided));
  stage_ = next;
}

bool Proposer::is_here(const wire::Member& process) const {
  const auto here = here_.find(process.peer);
  return here != here_.end() && here->second == process.incarnation;
}

bool Proposer::has_quorum(const std::set<PeerId>& peers) const { return is_quorum(members_, peers); }

// ---- promises

Proposer::Heard Proposer::on_promise(const wire::Member& from, const wire::Promise& promise) {
  if (!names(members_, from) || promise.ballot < ballot_ || promise.ballot > kHighestBallot)
    return Heard::nothing;
  if (promise.ballot > ballot_) {
    outbid_by(promise.ballot);
    return Heard::outbid;
  }
  if (stage_ != Stage::preparing) return Heard::late;  // its progress will come
  promises_[from.peer] = promise;
  return Heard::counted;
}

void Proposer::refresh(PeerId from, const wire::Progress& progress) {
  const auto promise = promises_.find(from);
  if (promise == promises_.end()) return;
  const bool keeps_mean = promise->second.progress.called && progress.called;
  promise->second.progress = progress;
  promise->second.progress.called = keeps_mean;
}

Proposer::Start Proposer::begin(bool minority) {
  TW_CHECK(stage_ == Stage::preparing);
  const std::set<PeerId> promised = this->promised();
  for (const wire::Member& m : members_) {
    if (is_here(m) && !promised.contains(m.peer) && !promises_.contains(m.peer)) return Start::waits;
  }
  if (!has_quorum(promised) && !minority) return Start::waits;

  const wire::Accepted* newest = newest_accepted();
  if (newest == nullptr) {
    enter(Stage::open);
    return Start::open;
  }
  keepers_ = keepers_of(*newest);
  if (keepers_.empty() && !votes_were_lost(*newest)) {
    resign();
    return Start::stuck;
  }
  if (keepers_.empty() && !minority) return Start::lost;
  if (keepers_.empty()) {
    gave_up_ = true;
    enter(Stage::open);
    return Start::open;
  }
  bound_ = *newest;
  enter(Stage::bound);
  return Start::bound;
}

// A seat that changed hands has not voted, and is bound by its keeper's promise.
std::set<PeerId> Proposer::promised() const {
  std::set<PeerId> promised;
  for (const auto& [peer, promise] : promises_) {
    if (!promise.progress.gave_seat) promised.insert(peer);
    promised.insert(promise.progress.seats.begin(), promise.progress.seats.end());
  }
  return promised;
}

const wire::Accepted* Proposer::newest_accepted() const {
  const wire::Accepted* newest = nullptr;
  for (const auto& [peer, promise] : promises_) {
    if (!promise.accepted) continue;
    const wire::Accepted& accepted = *promise.accepted;
    if (!newest || number_of(accepted.plan) > number_of(newest->plan)) newest = &accepted;
  }
  return newest;
}

bool Proposer::lacks_mean() const {
  const wire::Accepted* newest = newest_accepted();
  const bool lost = newest != nullptr && keepers_of(*newest).empty() && votes_were_lost(*newest);
  return gave_up_ || (stage_ == Stage::preparing && lost);
}

std::set<PeerId> Proposer::keepers_of(const wire::Accepted& accepted) const {
  std::set<PeerId> keepers;
  for (const auto& [peer, promise] : promises_) {
    const bool keeps = here_.contains(peer) && promise.progress.called;
    if (keeps && voted_for_mean_of(promise, accepted)) keepers.insert(peer);
  }
  return keepers;
}

bool Proposer::votes_were_lost(const wire::Accepted& accepted) const {
  return std::ranges::any_of(promises_, [&](const auto& word) {
    return here_.contains(word.first) && !word.second.progress.called &&
           voted_for_mean_of(word.second, accepted);
  });
}

// ---- plans

const wire::Plan& Proposer::propose(wire::Plan plan) {
  TW_CHECK(plan.draft.round == round_);
  TW_CHECK(!bound_ || finishes(plan.draft, bound_->plan.draft));
  plan.ballot = ballot_;
  plan.version = ++version_;
  votes_.clear();
  plan_ = std::make_shared<const wire::Plan>(std::move(plan));
  enter(Stage::proposed);
  return *plan_;
}

void Proposer::reopen() { enter(Stage::open); }

// ---- votes

bool Proposer::on_vote(const wire::Member& from, const wire::Vote& vote) {
  const bool counts = stage_ == Stage::proposed && vote.step == plan_->step() && vote.ballot == ballot_ &&
                      vote.version == version_ && is_here(from);
  if (counts) votes_[from.peer] = {from.incarnation, vote.mean, vote.seats};
  return counts;
}

std::set<PeerId> Proposer::voters() const {
  std::set<PeerId> peers;
  for (const auto& [peer, voice] : votes_) {
    const auto here = here_.find(peer);
    if (here != here_.end() && here->second == voice.incarnation) peers.insert(peer);
  }
  return peers;
}

std::set<PeerId> Proposer::seats_of_votes() const {
  std::set<PeerId> seats;
  for (const PeerId peer : voters()) seats.insert(votes_.at(peer).seats.begin(), votes_.at(peer).seats.end());
  return seats;
}

Proposer::Count Proposer::count() const {
  using Outcome = Count::Outcome;
  const std::set<PeerId> seats = seats_of_votes();
  const auto waits_for = [&](PeerId peer) {
    return here_.contains(peer) && !votes_.contains(peer) && !seats.contains(peer) && !silent_.contains(peer);
  };
  if (std::ranges::any_of(plan_->participants, waits_for)) return {Outcome::waits};
  const std::set<PeerId> agreed = voters();
  if (agreed.empty()) return {Outcome::waits};
  // Every peer decodes the same bytes; one that has another mean has a broken memory.
  const auto mean_of = [&](PeerId peer) { return votes_.at(peer).mean; };
  for (PeerId peer : agreed) {
    if (mean_of(peer) == mean_of(*agreed.begin())) continue;
    const auto same = [&](PeerId other) { return mean_of(other) == mean_of(peer); };
    const bool outvoted = 2 * std::ranges::count_if(agreed, same) <= std::ssize(agreed);
    return {Outcome::differ, outvoted ? peer : *agreed.begin()};
  }
  std::set<PeerId> members;
  for (const wire::Member& m : members_) {
    if ((agreed.contains(m.peer) && is_here(m)) || seats.contains(m.peer)) members.insert(m.peer);
  }
  const bool enough = has_quorum(members) || plan_->draft.minority;
  return {enough ? Outcome::agreed : Outcome::too_few};
}

void Proposer::decide() {
  TW_CHECK(stage_ == Stage::proposed && count().outcome == Count::Outcome::agreed);
  decision_ = plan_->draft;
  decision_->mean = votes_.at(*voters().begin()).mean;
  enter(Stage::decided);
}

// ---- the end of a ballot

void Proposer::outbid_by(Ballot ballot) {
  outbid_ = std::max(outbid_, ballot);
  resigned_ = true;
}

}  // namespace tw::swarm
