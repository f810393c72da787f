// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "swarm/quorum.h"
#include "train/session_machine.h"

namespace tw {
namespace {

/// A peer that lags by more rounds takes the state instead of their means.
constexpr Round kReplayAtMost = 8;
/// It lost ground so often though the others waited for it: it would load their lines for ever.
constexpr std::uint32_t kLostForGood = 100;

}  // namespace

std::vector<PeerId> Session::Machine::sources() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, incarnation] : swarm_->roster().following()) peers.push_back(peer);
  return peers;
}

// ---- taking
// ---------------------------------------------------------------------------------------------------

void Session::Machine::act(const CatchUp& catch_up) {
  emit(Phase::restore, round_, catch_up.why);
  leave_round();
  ReturnWait& returning = search_.return_wait();
  if (returning.stage() == ReturnWait::Stage::waiting) returning.end();
  catching_up_ = true;
  tip_is_restored_ = wants_other_state_ = false;
  caught_up_since_ = doors_.clock.now();
  departure_.catch_up();
  ground_.step_back();
  if (worker_.updates_under_way() == 0) begin_catch_up();
}

// What was averaged of it belongs to a history that this peer does not go on with.
void Session::Machine::leave_round() {
  averager_.abandon();
  round_ = 0;
}

bool Session::Machine::has_history() const { return tip_ && tip_->record.run == run_; }

void Session::Machine::begin_catch_up() {
  const Round newest = swarm_->best_told().round;
  told_sources_done_ = false;
  if (has_history()) fetch_->keep_to(tip_->record);
  // The offers show the history: those of another one are none, and then the state is taken.
  const bool near =
      has_history() && newest > tip_->record.round && newest - tip_->record.round <= kReplayAtMost;
  if (near && !rarely(options_.rarely, "session.full_state")) {
    fetch_->want_mean(doors_.clock.now(), tip_->record, sources());
  } else {
    fetch_->want_state(doors_.clock.now(), sources());
  }
}

void Session::Machine::poll_fetch() {
  for (const BadSource& refusal : fetch_->take_refusals()) {
    refuse(Cause::message, refusal.peer, refusal.why);
  }
  if (!catching_up_) return;
  fetch_->set_sources(doors_.clock.now(), sources());
  const Instant offered_at = fetch_->progress().since;
  if (std::optional<StateImage> image = fetch_->take_state()) {
    restore(std::move(*image), "other peers",
            {{"offer_s", to_seconds(offered_at - caught_up_since_)},
             {"transfer_s", to_seconds(doors_.clock.now() - offered_at)}});
  } else if (std::optional<FetchedMean> mean = fetch_->take_mean()) {
    replay(std::move(*mean));
  } else if (fetch_->gone()) {
    ground_.start_over(has_history() ? tip_->record.round : 0);
    want_state_again();
  } else if (wants_other_state_ && fetch_->progress().total == 0 &&
             !goes_before(swarm_->best_told(), rank_of(tip_->record))) {
    fetch_->stop();
    go_on_from(*tip_);
  }
  swarm_->catching_up(doors_.clock.now(), {ground_.lost(), fetch_->pieces()});
  if (ground_.lost() < kLostForGood) return;
  end("this peer's line is too slow for the run: " + std::to_string(kLostForGood) +
          " times the others went on faster than what they decided came here",
      true);
}

// What was told of a better history may have no source any more: the state that was just restored is offered
// then, and brings nothing.
void Session::Machine::want_state_again() {
  wants_other_state_ = tip_is_restored_;
  if (!wants_other_state_) return fetch_->want_state(doors_.clock.now(), sources());
  fetch_->want_other_state(doors_.clock.now(), tip_->record, sources());
}

void Session::Machine::restore(StateImage image, const std::string& from, Numbers parts) {
  tip_is_restored_ = wants_other_state_ = false;
  const auto shared =
      std::make_shared<const StateImage>(std::move(image));  // owners: the job, and its `done`
  worker_.restore(shared, [this, shared, from, parts = std::move(parts)](const Result<Digest>& parameters) {
    if (!parameters.ok()) {
      emit(Phase::refuse, shared->record.round, parameters.error().message);
      if (search_.return_wait().stage() == ReturnWait::Stage::resuming)
        return end(parameters.error().message, true);
      fetch_->want_state(doors_.clock.now(), sources());
      return;
    }
    Event event{doors_.clock.now(), Phase::restore, shared->record.round};
    event.why = "from " + from;
    event.digest = to_string(parameters.value());
    event.numbers = {{"bytes", static_cast<double>(shared->bytes())},
                     {"took_s", to_seconds(doors_.clock.now() - caught_up_since_)}};
    event.numbers.insert(event.numbers.end(), parts.begin(), parts.end());
    doors_.events.emit(event);
    if (observer_ != nullptr) observer_->on_applied(shared->record, parameters.value(), true);
    go_on_from({shared->record, parameters.value()});
  });
}

void Session::Machine::replay(FetchedMean mean) {
  tip_is_restored_ = wants_other_state_ = false;
  worker_.replay({.record = mean.record, .mean = std::move(mean.segments), .missed = true},
                 [this, record = mean.record](const Result<Digest>& parameters) {
                   if (!parameters.ok()) {
                     emit(Phase::refuse, record.round, parameters.error().message);
                     fetch_->want_state(doors_.clock.now(), sources());
                     return;
                   }
                   Event event{doors_.clock.now(), Phase::apply, record.round};
                   event.digest = to_string(parameters.value());
                   doors_.events.emit(event);
                   if (observer_ != nullptr) observer_->on_applied(record, parameters.value(), false);
                   go_on_from({record, parameters.value()});
                 });
}

void Session::Machine::go_on_from(Tip tip) {
  if (search_.return_wait().stage() == ReturnWait::Stage::resuming) {
    search_.return_wait().end();
    if (swarm_->standing() == Standing::syncing) return;  // others were found meanwhile: theirs will be here
  }
  tip_ = std::move(tip);
  tip_is_restored_ = true;
  wants_other_state_ = false;
  const Record& record = tip_->record;
  fetch_->keep_to(record);
  if (const Rank best = swarm_->best_told(); goes_before(best, rank_of(record))) {
    ground_.come_to(record.round, best.round);
    fetch_->want_mean(doors_.clock.now(), record, sources());
    return;
  }
  catching_up_ = false;
  ground_.stand_at_head();
  if (!finished()) departure_.stand_at(record.last);
  swarm_->begin(doors_.clock.now(), record, tip_->parameters);
}

// ---- giving
// ---------------------------------------------------------------------------------------------------

void Session::Machine::serve_images() {
  if (!donor_.wants_image() || freezing_ || catching_up_ || !tip_ || !swarm_->head()) return;
  freezing_ = true;
  worker_.freeze_soon(tip_->record, [this](const Learner::Image& image) {
    freezing_ = false;
    if (image && !catching_up_) donor_.give(image);
  });
}

bool Session::Machine::averaging_has_the_lines() const {
  return doors_.clock.now() < averager_.has_lines_until();
}

void Session::Machine::let_chunks_go() {
  if (!chunks_wait_ || averaging_has_the_lines()) return;
  chunks_wait_ = false;
  donor_.wake_followers();
}

// ---- checkpoints
// ----------------------------------------------------------------------------------------------

void Session::Machine::save_checkpoint(const Record& record) {
  if (record.last) departure_.begin_last_job();
  worker_.freeze(record, [this, record](const Learner::Image& image) {
    const auto saved = std::make_shared<std::optional<Status>>();  // owners: both halves of the disk job
    waits_.disk().submitted(doors_.clock.now(),
                            {.kind = Wait::Kind::saving, .round = record.round, .total = image->bytes()});
    doors_.disk.submit({[store = checkpoints_, image, saved] { saved->emplace(store->save(*image)); },
                        [this, alive = std::weak_ptr<int>(alive_), record, saved](Duration took) {
                          if (alive.expired()) return;
                          waits_.disk().finished(doors_.clock.now(), took);
                          const std::string why = (*saved)->ok() ? "" : (*saved)->error().message;
                          emit(Phase::checkpoint, record.round, why, {{"took_s", to_seconds(took)}});
                          if (record.last) departure_.finish_last_job();
                          finish_when_done();
                          pump();
                        }});
  });
}

void Session::Machine::consider_the_past() {
  if (options_.past == Past::begun) {
    search_.return_wait().begin(doors_.clock.now(), options_.run.patience, options_.past_found);
  }
  if (checkpoints_) return load_checkpoint();
  wait_for_others({});
  begin_history();
}

void Session::Machine::load_checkpoint() {
  using Loaded = Result<std::optional<LoadedCheckpoint>>;
  const auto loaded = std::make_shared<std::optional<Loaded>>();  // owners: both halves of the disk job
  waits_.disk().submitted(doors_.clock.now(), {.kind = Wait::Kind::loading});
  doors_.disk.submit(
      {[store = checkpoints_, run = run_, loaded] { loaded->emplace(store->load_newest(run)); },
       [this, alive = std::weak_ptr<int>(alive_), loaded](Duration took) {
         if (alive.expired()) return;
         waits_.disk().finished(doors_.clock.now(), took);
         if (finished()) return;
         Loaded& result = **loaded;
         if (!result.ok()) {
           if (options_.past == Past::over) return end(result.error().message, true);
           search_.return_wait().keep_trouble(result.error().message);
           wait_for_others("its checkpoints are here");
         } else if (result.value()) {
           take_checkpoint(std::move(*result.value()));
         } else {
           wait_for_others({});
           begin_history();
         }
         pump();
       }});
}

void Session::Machine::take_checkpoint(LoadedCheckpoint loaded) {
  const Record& record = loaded.image.record;
  for (const std::string& skipped : loaded.skipped) emit(Phase::checkpoint, record.round, skipped);
  if (swarm_->standing() != Standing::fresh) return;  // others were found already
  if (record.last) return end("the run is complete: its checkpoint is that of the last round", false);
  std::vector<Member> others = record.members;
  std::erase_if(others, [this](const Member& member) { return member.address == address_; });
  swarm_->seek(others);
  const bool waited = options_.past == Past::begun && search_.return_wait().stage() == ReturnWait::Stage::off;
  if (waited || options_.past == Past::over) return resume(std::move(loaded.image));
  search_.return_wait().keep(std::move(loaded.image));
  wait_for_others("its checkpoints are in " + options_.run.checkpoint.folder);
}

/// found: what else than the options says that the run had begun; empty: nothing.
void Session::Machine::wait_for_others(std::string found) {
  const Instant now = doors_.clock.now();
  ReturnWait& returning = search_.return_wait();
  if (returning.stage() == ReturnWait::Stage::off && options_.past == Past::unknown && !found.empty())
    returning.begin(now, options_.run.patience, std::move(found));
  if (returning.stage() == ReturnWait::Stage::waiting)
    emit(Phase::wait, 0, text_of(returning.waiting(now)), {{"seconds", 0}});
}

void Session::Machine::resume(StateImage checkpoint) {
  checkpoint.record =
      restarted(checkpoint.record, {{options_.self, address_, options_.incarnation, options_.site}});
  search_.return_wait().resume();
  catching_up_ = true;
  caught_up_since_ = doors_.clock.now();
  restore(std::move(checkpoint), "checkpoint", {});
}

// The state is here, and nobody is left who could decide what comes after it. It waits for the microbatch
// under way, so that all of it is one step: no decision of the round that it leaves comes between.
void Session::Machine::begin_anew_from_tip() {
  const bool has_state = tip_ && !catching_up_ && worker_.updates_under_way() == 0 && !worker_.is_computing();
  if (!has_state || goes_before(swarm_->best_told(), rank_of(tip_->record))) return;
  leave_round();
  // The round that it is in has the number of the first one of what begins: its sums are not wanted there.
  worker_.forget_sums();
  go_on_from_tip();
}

void Session::Machine::go_on_from_tip() {
  Tip anew{begun_anew(tip_->record, {{options_.self, address_, options_.incarnation, options_.site}}),
           tip_->parameters};
  Event event{doors_.clock.now(), Phase::restore, anew.record.round};
  event.why = "from its own state: no member of the run was reached for " +
              std::to_string(static_cast<int>(to_seconds(options_.run.patience))) + " s";
  event.digest = to_string(anew.parameters);
  doors_.events.emit(event);
  if (observer_ != nullptr) observer_->on_applied(anew.record, anew.parameters, true);
  go_on_from(std::move(anew));
}

}  // namespace tw
