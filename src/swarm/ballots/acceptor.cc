// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/acceptor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "swarm/ballots/quorum.h"

namespace tw::swarm {
void Acceptor::enter(Stage next) {
  TW_CHECK(next != Stage::idle);
  TW_CHECK(plan_ != nullptr);
  TW_CHECK((next == Stage::complete) == mean_.has_value());
  TW_CHECK(next != Stage::complete || averages());
  TW_CHECK(plan_->ballot <= promised_);
  TW_CHECK(!accepted_ || number_of(*accepted_->plan) <= number_of(*plan_));
  stage_ = next;
}

Acceptor::Answer Acceptor::answer(const std::vector<wire::Member>& members, const wire::Member& from,
                                  Ballot ballot) const {
  if (ballot > kHighestBallot || !ballot_owner(members, ballot).is(from)) return Answer::ignore;
  return ballot >= promised_ ? Answer::follow : Answer::bid_higher;
}

void Acceptor::promise(Ballot ballot) { promised_ = std::max(promised_, ballot); }

void Acceptor::take_seat(PeerId of, Ballot promised) {
  promise(promised);
  if (std::ranges::find(seats_, of) == seats_.end()) seats_.push_back(of);
}

std::optional<wire::Accepted> Acceptor::accepted() const {
  if (!accepted_) return std::nullopt;
  return wire::Accepted{*accepted_->plan, accepted_->mean};
}

wire::Promise Acceptor::word(Ballot ballot, wire::Progress progress) const {
  if (accepted_) progress.called = keeps_accepted_;
  return {ballot, std::move(progress), plan_ ? std::optional<wire::Plan>(*plan_) : std::nullopt, accepted()};
}

bool Acceptor::take(const wire::Plan& plan) {
  if (plan.ballot < promised_) return false;
  if (accepted_ && number_of(plan) < number_of(*accepted_->plan)) return false;
  if (averages() && plan_->ballot == plan.ballot && plan_->version >= plan.version) return false;
  promised_ = plan.ballot;
  plan_ = std::make_shared<const wire::Plan>(plan);
  mean_.reset();
  enter(Stage::averaging);
  return true;
}

void Acceptor::complete(const Digest& mean) {
  if (!averages()) return;
  mean_ = mean;
  enter(Stage::complete);
}

std::optional<wire::Vote> Acceptor::vote() {
  if (stage_ != Stage::complete || plan_->ballot < promised_) return std::nullopt;
  accepted_ = Vow{plan_, *mean_};
  keeps_accepted_ = true;
  return wire::Vote{plan_->step(), plan_->ballot, plan_->version, *mean_, seats_};
}

std::optional<wire::Record> Acceptor::expected() const {
  if (stage_ != Stage::complete) return std::nullopt;
  wire::Record decided = plan_->draft;
  decided.mean = *mean_;
  return decided;
}

void Acceptor::begin_round(bool again) {
  if (!again) *this = Acceptor();
  mean_.reset();
  keeps_accepted_ = false;
  if (plan_) enter(Stage::again);
}

Ballot Acceptor::bid(const std::vector<wire::Member>& members, const wire::Member& self, bool first) {
  const bool undisputed = first && promised_ == 0 && !led_;
  const Ballot above = std::max(promised_, led_.value_or(0));
  const Ballot ballot = undisputed ? 0 : next_ballot(members, self.peer, above);
  TW_CHECK(ballot_owner(members, ballot).is(self));
  TW_CHECK(!led_ || ballot > *led_);
  led_ = ballot;
  return ballot;
}

void Acceptor::outbid(Ballot ballot) {
  if (ballot <= kHighestBallot) led_ = std::max(led_.value_or(0), ballot);
}

}  // namespace tw::swarm
