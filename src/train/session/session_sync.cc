// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "train/session/session_machine.h"

namespace tw::train {

std::vector<PeerId> Session::Machine::sources() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, incarnation] : swarm_->roster().following()) peers.push_back(peer);
  return peers;
}

sync::Replica::Others Session::Machine::others() const {
  return {sources(), swarm_->best_told(), swarm_->anchors()};
}

// Their addresses, as far as they are known. None if this very process was no member: whoever comes back
// under its old id waits until the others have noticed the death of the former process.
std::vector<std::string> Session::Machine::others_of_last_majority() const {
  std::vector<std::string> addresses;
  if (!swarm_->head() || !swarm::names(swarm_->head()->members, self())) return addresses;
  const wire::Record& head = *swarm_->head();
  std::vector<PeerId> peers = head.awaited;
  if (peers.empty()) std::ranges::transform(head.members, std::back_inserter(peers), &wire::Member::peer);
  for (const PeerId peer : peers)
    if (peer != options_.self) addresses.push_back(swarm_->roster().process(peer).address);
  return addresses;
}

// ---- taking
// ---------------------------------------------------------------------------------------------------

void Session::Machine::act(const swarm::CatchUp& catch_up) {
  emit(world::Phase::restore, step_.round, catch_up.why);
  if (catch_up.differs && computes_other_bits()) return;
  leave_round();
  ReturnWait& returning = search_.return_wait();
  if (returning.stage() == ReturnWait::Stage::waiting) returning.end();
  departure_.catch_up();
  using Behind = sync::Replica::Behind;
  replica_.catch_up(doors_.clock.now(), catch_up.differs ? Behind::differs : Behind::rounds,
                    worker_.stands_ready(), others());
}

// The same mean gives other parameters on this machine: fetching the state again would not help.
bool Session::Machine::computes_other_bits() {
  const auto rounds = replica_.differed(swarm_->head()->round);
  if (!rounds) return false;
  end(fmt::format(
          "after the same means this peer had other parameters than the leader in rounds {}: its "
          "program changes them between rounds, or its optimizer computes other bits on this machine; "
          "use one of the engine's (sgd, adam, adamw, lamb), or the same hardware and versions everywhere",
          fmt::join(*rounds, ", ")),
      true);
  return true;
}

// The averaged data of the round belong to a history that this peer drops.
void Session::Machine::leave_round() {
  TW_CHECK(!finished());
  averager_.abandon();
  step_ = {};
}

bool Session::Machine::catch_up_further() {
  for (const sync::BadSource& refusal : replica_.take_refusals()) {
    refuse(world::Cause::message, refusal.peer, refusal.why);
  }
  if (!replica_.is_catching_up()) return false;
  const Instant now = doors_.clock.now();
  sync::Replica::Next next = replica_.next(now, others());
  if (auto* taken = std::get_if<sync::Replica::TakeState>(&next)) {
    restore(std::move(taken->image), world::Cause::none,
            {{"offer_s", to_seconds(taken->offer)}, {"transfer_s", to_seconds(taken->transfer)}});
  } else if (auto* missed = std::get_if<sync::Replica::TakeMean>(&next)) {
    replay(std::move(missed->mean));
  } else if (std::holds_alternative<sync::Replica::GoOn>(next)) {
    go_on_from(*replica_.tip());
  }
  swarm_->catching_up(now, replica_.progress_of_catching_up());
  if (!replica_.is_too_slow()) return !std::holds_alternative<std::monostate>(next);
  end("this peer's line is too slow for the run: " + std::to_string(sync::Replica::kLostForGood) +
          " times the others went on faster than what they decided came here",
      true);
  return false;
}

/// For the log: after which record a peer has its state. begins: a history begins anew with it.
std::vector<std::pair<std::string, std::string>> Session::Machine::of_record(const wire::Record& record,
                                                                             bool begins) {
  std::vector<std::pair<std::string, std::string>> texts = {{"record", to_string(digest_of(record))}};
  if (begins) texts.emplace_back("parent", to_string(record.parent));
  return texts;
}

// from: none, other peers.
void Session::Machine::restore(sync::StateImage image, world::Cause from, Numbers parts) {
  const auto shared =
      std::make_shared<const sync::StateImage>(std::move(image));  // owners: the job, and its `done`
  worker_.restore(shared, [this, shared, from, parts = std::move(parts)](const Result<Digest>& parameters) {
    if (!parameters.ok()) {
      emit(world::Phase::refuse, shared->record.round, parameters.error().message);
      if (search_.return_wait().stage() == ReturnWait::Stage::resuming)
        return end(parameters.error().message, true);
      return replica_.take_again(doors_.clock.now(), others());
    }
    world::Event event{doors_.clock.now(), world::Phase::restore, shared->record.round};
    event.why = from == world::Cause::checkpoint ? "from checkpoint" : "from other peers";
    event.cause = from;
    event.digest = to_string(parameters.value());
    event.numbers = {{"bytes", static_cast<double>(shared->bytes())},
                     {"took_s", to_seconds(doors_.clock.now() - replica_.since())}};
    event.numbers.insert(event.numbers.end(), parts.begin(), parts.end());
    event.texts = of_record(shared->record, from == world::Cause::checkpoint);
    doors_.events.emit(event);
    if (observer_ != nullptr) observer_->on_applied(shared->record, parameters.value(), true);
    if (from == world::Cause::none) checkpoints_.took_state(shared->record);
    go_on_from({shared->record, parameters.value()});
  });
}

void Session::Machine::replay(sync::FetchedMean mean) {
  worker_.replay({.record = mean.record, .mean = std::move(mean.segments), .missed = true},
                 [this, record = mean.record](const Result<Digest>& parameters) {
                   if (!parameters.ok()) {
                     emit(world::Phase::refuse, record.round, parameters.error().message);
                     return replica_.take_again(doors_.clock.now(), others());
                   }
                   world::Event event{doors_.clock.now(), world::Phase::apply, record.round};
                   event.digest = to_string(parameters.value());
                   event.texts = of_record(record, false);
                   doors_.events.emit(event);
                   if (observer_ != nullptr) observer_->on_applied(record, parameters.value(), false);
                   go_on_from({record, parameters.value()});
                 });
}

void Session::Machine::go_on_from(const sync::Replica::Tip& tip) {
  if (search_.return_wait().stage() == ReturnWait::Stage::resuming) {
    search_.return_wait().end();
    if (swarm_->peer_state() == wire::PeerState::syncing)
      return;  // others were found meanwhile: their state will arrive
  }
  const Instant now = doors_.clock.now();
  if (!replica_.come_to(now, tip, others())) return;
  if (!finished()) departure_.stand_at(tip.record.last);
  swarm_->begin(now, tip.record, tip.parameters);
}

// ---- giving
// ---------------------------------------------------------------------------------------------------

void Session::Machine::serve_images() {
  const std::optional<wire::Record> wanted = replica_.wants_image();
  if (!wanted) return;
  const auto copied = [this, of = *replica_.tip()](const Learner::Image& image) {
    const bool other = image && of.parameters != Digest{} && image->parameters != of.parameters;
    if (!other) return replica_.give(image);
    // A busy program may have other values in its model meanwhile, such as averaged ones to evaluate.
    if (replica_.tip()->record != of.record) return replica_.give(nullptr);
    worker_.freeze(of.record, [this](const Learner::Image& later) { replica_.give(later); });
  };
  worker_.freeze_soon(*wanted, copied);
}

void Session::Machine::let_chunks_go() {
  if (replica_.holds_chunks() && doors_.clock.now() >= averager_.has_lines_until()) replica_.let_chunks_go();
}

// ---- checkpoints
// ----------------------------------------------------------------------------------------------

void Session::Machine::save_checkpoint(const wire::Record& record) {
  if (record.last) departure_.begin_last_job();
  worker_.freeze(record, [this, record](const Learner::Image& image) {
    checkpoints_.save(image, [this, record](const Status& saved, Duration took) {
      tell_of_saving(world::Phase::checkpoint, record, saved, took);
      copy_checkpoint(record.last);
      if (record.last) departure_.finish_last_job();
      finish_when_done();
    });
  });
}

void Session::Machine::tell_of_saving(world::Phase phase, const wire::Record& record, const Status& saved,
                                      Duration took) {
  emit({.phase = phase,
        .round = record.round,
        .why = saved.ok() ? "" : saved.error().message,
        .numbers = {{"took_s", to_seconds(took)}},
        .digest = saved.ok() ? to_string(digest_of(record)) : "",
        .cause = saved.ok() ? world::Cause::none : world::Cause::failed});
}

/// awaited: the run ends with it.
void Session::Machine::copy_checkpoint(bool awaited) {
  if (!checkpoints_.copy_is_due()) return;
  if (awaited) departure_.begin_last_job();
  checkpoints_.copy(facts_.digest(), [this, awaited](const Checkpoints::Copied& copied, Duration took) {
    if (!copied.ok()) {
      tell_of_saving(world::Phase::copy, {.round = step_.round}, copied.error(), took);
    } else if (copied.value()) {
      tell_of_saving(world::Phase::copy, *copied.value(), Unit{}, took);
    }
    if (awaited) departure_.finish_last_job();
    finish_when_done();
  });
}

/// No member stays. Where all leave at once, the first of them is the last.
bool Session::Machine::is_last_to_leave() const {
  bool before_self = true;
  for (const wire::Member& member : swarm_->head()->members) {
    const bool is_self = member.is(self());
    before_self = before_self && !is_self;
    if (is_self || !swarm_->roster().is_open(member)) continue;
    if (before_self || !swarm_->stances().of(member.peer).leaving) return false;
  }
  return true;
}

void Session::Machine::act(const swarm::Ended& ended) {
  if (!saves_the_last_state(ended)) end(ended.why, ended.failed);
}

/// The last one to leave takes the state with it: a checkpoint is made first. True: it ends after that.
bool Session::Machine::saves_the_last_state(const swarm::Ended& ended) {
  const std::optional<wire::Record>& head = swarm_->head();
  const bool has_state = replica_.state() == sync::Replica::State::current && head && head->round > 0;
  if (ended.failed || !has_state || !is_last_to_leave() || !checkpoints_.lacks(*head)) return false;
  worker_.freeze(*head, [this, record = *head, why = ended.why](const Learner::Image& image) {
    checkpoints_.save(image, [this, record, why](const Status& saved, Duration took) {
      tell_of_saving(world::Phase::checkpoint, record, saved, took);
      end(why, false);
    });
  });
  return true;
}

// This peer has the state, and no member is left to decide the next record. It waits for the microbatch under
// way, so that it is one step: no decision of the round that it leaves comes between.
void Session::Machine::begin_anew_from_tip() {
  const bool has_state =
      replica_.state() == sync::Replica::State::current && worker_.updates_under_way() == 0;
  if (!has_state || worker_.is_computing()) return;
  if (goes_before(swarm_->best_told(), rank_of(replica_.tip()->record))) return;
  leave_round();
  // The current round has the number of the first round of the new history: drop its sums.
  worker_.forget_sums();
  go_on_from_tip();
}

void Session::Machine::go_on_from_tip() {
  TW_CHECK(replica_.tip() && step_.round == 0);
  const sync::Replica::Tip anew{swarm::begun_anew(replica_.tip()->record, {self()}),
                                replica_.tip()->parameters};
  world::Event event{doors_.clock.now(), world::Phase::restore, anew.record.round};
  event.why = "from its own state: no member of the run was reached for " +
              std::to_string(static_cast<int>(to_seconds(options_.run.patience))) + " s";
  event.cause = world::Cause::anew;
  event.digest = to_string(anew.parameters);
  event.texts = of_record(anew.record, true);
  doors_.events.emit(event);
  if (observer_ != nullptr) observer_->on_applied(anew.record, anew.parameters, true);
  go_on_from(anew);
}

}  // namespace tw::train
