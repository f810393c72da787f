// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "train/session/session_machine.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

std::string complete_text(Round round, const std::string& end) {
  return fmt::format(
      "the run is complete: its checkpoint is that of the last round, {}; to go on from there, "
      "raise what ended it ({})",
      round, end);
}

constexpr const char* kAnew = "once with anew (--anew; in Python anew=True or TRADEWIND_ANEW=1)";

}  // namespace

// ---- what is left of the run from before this process
// -----------------------------------------------------------

std::string Session::Machine::checkpoint_places() const {
  const CheckpointOptions& places = options_.run.checkpoint;
  if (places.folder.empty()) return "no folder: checkpoint.folder is none";
  return places.folder + (places.to.empty() ? "" : " and " + places.to);
}

/// What to say if neither a peer with the state nor a checkpoint is found. Empty: no log shows rounds of it.
std::string Session::Machine::lost_text() const {
  if (options_.past_rounds == 0) return {};
  return fmt::format(
      "{} rounds of this run are lost ({}): no peer with its state was reached, and no "
      "checkpoint is in {}. To train again from round 1, start this peer {}",
      options_.past_rounds, options_.past_found, checkpoint_places(), kAnew);
}

bool Session::Machine::has_lost_the_run() const {
  return options_.past_rounds > 0 && departure_.failed() && departure_.reason() == lost_text();
}

void Session::Machine::consider_the_past() {
  if (options_.anew) return set_checkpoints_aside();
  if (options_.past == Past::begun) {
    search_.return_wait().begin(doors_.clock.now(), options_.run.patience, options_.past_found);
  }
  if (!checkpoints_.are_kept()) return found_no_checkpoint();
  replica_.load();
  checkpoints_.load(facts_.digest(), [this](Checkpoints::Loaded& loaded) { found_checkpoints(loaded); });
}

/// The run begins anew: nobody resumes what there is.
void Session::Machine::set_checkpoints_aside() {
  if (!checkpoints_.are_kept()) return begin_history();
  replica_.load();
  checkpoints_.set_aside(facts_.digest(), [this](const Status& moved) {
    if (finished()) return;
    replica_.loaded_nothing();
    if (!moved) return end(moved.error().message, true);
    if (swarm_->peer_state() == wire::PeerState::fresh) begin_history();
  });
}

void Session::Machine::found_no_checkpoint() {
  const std::string lost = lost_text();
  if (!lost.empty() && options_.past == Past::over) return end(lost, true);
  ReturnWait& returning = search_.return_wait();
  if (!lost.empty() && returning.stage() == ReturnWait::Stage::waiting) returning.keep_trouble(lost);
  wait_for_others({});
  begin_history();
}

void Session::Machine::found_checkpoints(Checkpoints::Loaded& loaded) {
  if (finished()) return;
  replica_.loaded_nothing();
  if (loaded.ok() && loaded.value()) return take_checkpoint(std::move(*loaded.value()));
  if (swarm_->peer_state() != wire::PeerState::fresh) return;  // others were found meanwhile
  if (!loaded.ok()) {
    if (options_.past == Past::over) return end(loaded.error().message, true);
    search_.return_wait().keep_trouble(loaded.error().message);
    wait_for_others("whether it has checkpoints is not known: " + loaded.error().message);
  } else {
    found_no_checkpoint();
  }
}

// A run that has ended goes on when what ended it was changed.
bool Session::Machine::goes_on_after(const sync::LoadedCheckpoint& loaded) const {
  const wire::Record& record = loaded.image.record;
  return !record.last || (record.round < options_.run.rounds && loaded.words.end != facts_.words().end);
}

/// The checkpoint is that of a run that is complete. Where nobody chose its folder, the same command is a new
/// run, unless something says that it was started again.
void Session::Machine::stand_at_the_end(Round round) {
  if (!options_.run.checkpoint.is_usual || options_.past == Past::begun)
    return end(complete_text(round, facts_.words().end), false);
  emit({.phase = world::Phase::checkpoint,
        .round = round,
        .why =
            fmt::format("the run was complete in round {}, and begins again: its checkpoints in {} get names "
                        "that end with .old",
                        round, checkpoint_places()),
        .cause = world::Cause::skipped});
  set_checkpoints_aside();
}

void Session::Machine::take_checkpoint(sync::LoadedCheckpoint loaded) {
  const wire::Record& record = loaded.image.record;
  for (const std::string& skipped : loaded.skipped) {
    emit({.phase = world::Phase::checkpoint,
          .round = record.round,
          .why = skipped,
          .cause = world::Cause::skipped});
  }
  if (swarm_->peer_state() != wire::PeerState::fresh) return;  // others were found already
  if (!goes_on_after(loaded)) return stand_at_the_end(record.round);
  std::vector<wire::Member> others = record.members;
  std::erase_if(others, [this](const wire::Member& member) { return member.address == address_; });
  swarm_->seek(others);
  const bool waited = options_.past == Past::begun && search_.return_wait().stage() == ReturnWait::Stage::off;
  if (waited || options_.past == Past::over) return resume(std::move(loaded.image));
  search_.return_wait().keep(std::move(loaded));
  wait_for_others("its checkpoints are in " + checkpoint_places());
}

/// found: a sign besides the options that the run had begun; empty: none.
void Session::Machine::wait_for_others(std::string found) {
  const Instant now = doors_.clock.now();
  ReturnWait& returning = search_.return_wait();
  if (returning.stage() == ReturnWait::Stage::off && options_.past == Past::unknown && !found.empty())
    returning.begin(now, options_.run.patience, std::move(found));
  if (returning.stage() == ReturnWait::Stage::waiting)
    emit(world::Phase::wait, 0, text_of(returning.waiting(now)), {{"seconds", 0}});
}

// ---- what the peers hold that wait together
// -----------------------------------------------------------------------------------------------------

void Session::Machine::ask_for_checkpoints(Instant now) {
  for (const PeerId peer : search_.held().due(now, swarm_->roster().open_peers()))
    doors_.network.send(peer, encode(wire::AskCheckpoint{}));
}

/// The wait for the others is over: the newest checkpoint of all goes on. True while another peer is to
/// resume, or may have to.
bool Session::Machine::lets_another_resume(Instant now) {
  HeldElsewhere& held = search_.held();
  if (held.awaits_answers(now)) return true;
  const auto heir = held.heir(now, search_.return_wait().checkpoint());
  if (!heir) return false;
  if (heir->is_due) doors_.network.send(heir->peer, encode(wire::AskCheckpoint{digest_of(heir->record)}));
  return true;
}

bool Session::Machine::on_checkpoint_message(PeerId from, const wire::Message& message) {
  if (const auto* ask = std::get_if<wire::AskCheckpoint>(&message)) {
    answer(from, *ask);
  } else if (const auto* held = std::get_if<wire::HeldCheckpoint>(&message)) {
    if (!held->record || held->record->run == facts_.digest()) search_.held().on_answer(from, *held);
  } else {
    return false;
  }
  return true;
}

/// Nothing while it is busy with its beginning: it is asked again.
void Session::Machine::answer(PeerId from, const wire::AskCheckpoint& ask) {
  const bool free = swarm_->peer_state() == wire::PeerState::fresh &&
                    worker_.state() == Worker::State::idle &&
                    waits_.disk().current().kind == swarm::Wait::Kind::nothing;
  if (!free) return;
  if (!checkpoints_.are_kept() || options_.founds())
    return doors_.network.send(from, encode(wire::HeldCheckpoint{}));
  checkpoints_.load(facts_.digest(), [this, from, ask](Checkpoints::Loaded& loaded) {
    if (finished() || swarm_->peer_state() != wire::PeerState::fresh) return;
    wire::HeldCheckpoint held;
    if (loaded.ok() && loaded.value() && goes_on_after(*loaded.value())) {
      held = {loaded.value()->image.record, loaded.value()->origin};
      if (ask.resume == digest_of(*held.record)) return resume(std::move(loaded.value()->image));
    }
    doors_.network.send(from, encode(held));
  });
}

void Session::Machine::resume(sync::StateImage checkpoint) {
  if (options_.run.checkpoint.is_usual && options_.past != Past::begun)
    emit(
        world::Phase::warn, checkpoint.record.round,
        fmt::format("goes on from the checkpoint of round {} in {}; to train again from round 1, start it {}",
                    checkpoint.record.round, checkpoint_places(), kAnew));
  checkpoints_.resumed(checkpoint.record);
  checkpoint.record = swarm::restarted(checkpoint.record, {self()});
  checkpoint.record.last = false;
  TW_CHECK(swarm_->peer_state() == wire::PeerState::fresh);
  search_.return_wait().resume();
  replica_.resume(doors_.clock.now());
  restore(std::move(checkpoint), world::Cause::checkpoint, {});
}

}  // namespace tw::train
