// SPDX-License-Identifier: Apache-2.0
#include "sync/replica.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace tw::sync {
namespace {

/// A peer that lags by more rounds than this takes the state instead of their means.
constexpr Round kReplayAtMost = 8;

bool may_follow(Replica::State before, Replica::State next) {
  using State = Replica::State;
  const bool behind = next == State::settling || next == State::fetching;
  switch (before) {
    case State::empty:
      return behind || next == State::loading || next == State::resuming || next == State::current;
    case State::loading:
      return behind || next == State::empty || next == State::resuming;
    case State::resuming:
      return behind || next == State::current;
    case State::settling:
      return next == State::fetching;
    case State::fetching:
      return next == State::fetching || next == State::restoring || next == State::replaying ||
             next == State::current;
    case State::restoring:
    case State::replaying:
      return next == State::fetching || next == State::current;
    case State::current:  // resuming: it had only the parameters from the seed
      return behind || next == State::current || next == State::resuming;
  }
  return false;
}

}  // namespace

Replica::Replica(const Options& options)
    : options_(options), fetch_(options.fetch), donor_(Donor::Options{.rarely = options.rarely}) {}

void Replica::go_to(State next) {
  TW_CHECK(may_follow(state_, next));
  state_ = next;
}

// ---- its own way
// ----------------------------------------------------------------------------------------------

void Replica::loaded_nothing() {
  if (state_ == State::loading) go_to(State::empty);  // otherwise others were found meanwhile
}

void Replica::resume(Instant now) {
  TW_CHECK(!has_history());
  go_to(State::resuming);
  base_ = Base::own;
  since_ = now;
  struggles_since_ = now;
}

void Replica::begin(const Digest& parameters) {
  if (!tip_) tip_ = Tip{{}, parameters};
  if (state_ == State::empty) go_to(State::current);
}

bool Replica::found(const wire::Record& genesis) {
  if (!tip_ || has_history()) return false;
  tip_->record = genesis;
  return true;
}

void Replica::commit(const wire::Record& record, const std::vector<Blob>& mean) {
  TW_CHECK(state_ == State::current);
  donor_.keep_mean(record, mean);
  tip_ = Tip{record, {}};
}

void Replica::applied(Round round, const Digest& parameters) {
  if (tip_ && tip_->record.round == round) tip_->parameters = parameters;
}

// ---- the way to the others
// ------------------------------------------------------------------------------------

void Replica::catch_up(Instant now, Behind behind, bool settled, const Others& others) {
  since_ = now;
  base_ = behind == Behind::differs ? Base::differs : Base::own;
  if (ground_.lost() == 0) struggles_since_ = now;
  ground_.step_back();
  if (settled) return begin_to_fetch(now, others);
  go_to(State::settling);
}

std::optional<std::vector<Round>> Replica::differed(Round round) {
  if (differed_.empty() || differed_.back() != round) differed_.push_back(round);
  const Round within = kWithin * options_.digest_every;
  std::erase_if(differed_, [round, within](Round earlier) { return earlier + within <= round; });
  if (differed_.size() < kMostDifferences) return std::nullopt;
  return differed_;
}

void Replica::settled(Instant now, const Others& others) {
  TW_CHECK(state_ == State::settling);
  begin_to_fetch(now, others);
}

void Replica::begin_to_fetch(Instant now, const Others& others) {
  go_to(State::fetching);
  owes_thanks_ = true;
  fetch_.prefer(others.anchors);
  if (has_history()) fetch_.keep_to(tip_->record);
  // Offers show the history: an offer of another history does not count, and then the state is taken.
  const Round newest = others.best.round;
  const bool near = base_ != Base::differs && has_history() && newest > tip_->record.round &&
                    newest - tip_->record.round <= kReplayAtMost;
  if (near && !rarely(options_.rarely, "session.full_state")) {
    fetch_.want_mean(now, tip_->record, others.sources);
  } else {
    fetch_.want_state(now, others.sources);
  }
}

Replica::Next Replica::next(Instant now, const Others& others) {
  TW_CHECK(is_catching_up());
  fetch_.prefer(others.anchors);
  fetch_.set_sources(now, others.sources);
  const Instant offered_at = fetch_.progress().since;
  if (std::optional<StateImage> image = fetch_.take_state()) {
    go_to(State::restoring);
    base_ = Base::own;
    return TakeState{*std::move(image), offered_at - since_, now - offered_at};
  }
  if (std::optional<FetchedMean> mean = fetch_.take_mean()) {
    go_to(State::replaying);
    base_ = Base::own;
    return TakeMean{*std::move(mean)};
  }
  if (fetch_.gone()) {
    ground_.start_over(has_history() ? tip_->record.round : 0);
    fetch_state_again(now, others);
  } else if (base_ == Base::rejected && fetch_.progress().total == 0 &&
             !goes_before(others.best, rank_of(tip_->record))) {
    fetch_.stop();
    return GoOn{};
  }
  return {};
}

// The better history may have no source any more: then the state that was just restored is offered again,
// which helps nothing.
void Replica::fetch_state_again(Instant now, const Others& others) {
  if (base_ == Base::own || base_ == Base::differs) return fetch_.want_state(now, others.sources);
  base_ = Base::rejected;
  fetch_.want_other_state(now, tip_->record, others.sources);
}

void Replica::take_again(Instant now, const Others& others) {
  go_to(State::fetching);
  fetch_.want_state(now, others.sources);
}

bool Replica::come_to(Instant now, const Tip& tip, const Others& others) {
  tip_ = tip;
  base_ = Base::restored;
  const wire::Record& record = tip_->record;
  fetch_.keep_to(record);
  if (goes_before(others.best, rank_of(record))) {
    go_to(State::fetching);
    ground_.come_to(record.round, others.best.round);
    fetch_.want_mean(now, record, others.sources);
    return false;
  }
  go_to(State::current);
  ground_.stand_at_head();
  return true;
}

void Replica::joined() {
  ground_.hold();
  if (std::exchange(owes_thanks_, false)) fetch_.finish();
}

// ---- what others get
// ------------------------------------------------------------------------------------------

std::optional<wire::Record> Replica::wants_image() {
  if (!donor_.wants_image() || is_copied_ || is_catching_up() || !has_history()) return std::nullopt;
  is_copied_ = true;
  return tip_->record;
}

// owners: Donor::give
void Replica::give(std::shared_ptr<const StateImage> image) {
  TW_CHECK(is_copied_);
  is_copied_ = false;
  if (image && !is_catching_up()) donor_.give(std::move(image));
}

std::optional<wire::Message> Replica::next_chunk(PeerId to, bool lines_are_taken) {
  if (!lines_are_taken) return donor_.next_bulk(to);
  holds_chunks_ = true;
  return std::nullopt;
}

void Replica::let_chunks_go() {
  holds_chunks_ = false;
  donor_.wake_followers();
}

// ---- messages
// -------------------------------------------------------------------------------------------------

bool Replica::on_message(Instant now, PeerId from, wire::Message& message) {
  const bool asks =
      std::holds_alternative<wire::ObjectAsk>(message) || std::holds_alternative<wire::ChunkAsk>(message);
  if (asks) asked_at_ = now;
  if (const auto* ask = std::get_if<wire::ObjectAsk>(&message)) {
    donor_.on_ask(from, *ask, has_history() && !is_catching_up() ? &tip_->record : nullptr);
  } else if (const auto* chunk_ask = std::get_if<wire::ChunkAsk>(&message)) {
    donor_.on_chunk_ask(from, *chunk_ask);
  } else if (std::holds_alternative<wire::SyncDone>(message)) {
    donor_.on_done(from);
  } else if (auto* offer = std::get_if<wire::ObjectOffer>(&message)) {
    fetch_.on_offer(now, from, std::move(*offer));
  } else if (const auto* gone = std::get_if<wire::ObjectGone>(&message)) {
    fetch_.on_gone(now, from, *gone);
  } else if (auto* chunk = std::get_if<wire::Chunk>(&message)) {
    fetch_.on_chunk(now, from, std::move(*chunk));
  } else {
    return false;
  }
  return true;
}

wire::Outbox Replica::take_messages() {
  wire::Outbox messages = donor_.take_messages();
  std::ranges::move(fetch_.take_messages(), std::back_inserter(messages));
  return messages;
}

}  // namespace tw::sync
