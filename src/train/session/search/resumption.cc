// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/resumption.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "train/session/search/peer_search.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

/// Those of a run before included.
Round rounds_of(const sync::LoadedCheckpoint& loaded) { return loaded.begun + loaded.image.record.round; }

/// A budget, or a program, ends a run before its last round.
std::string over_text(const sync::LoadedCheckpoint& loaded, const RunOptions& run) {
  const Round own = loaded.image.record.round;
  const std::string all =
      loaded.begun > 0 ? fmt::format(" ({} with those before it)", rounds_of(loaded)) : std::string();
  if (rounds_of(loaded) < run.rounds)
    return fmt::format(
        "the run is over: {} in round {}{} of {}, checkpoint {}; raise {} to go on",
        run.budget.drains() ? "its budget was spent, or a program ended it," : "a program ended it", own, all,
        run.rounds, loaded.path, run.budget.drains() ? "budget_usd, or rounds," : "rounds");
  return fmt::format("the run is complete: round {}{}, checkpoint {}; raise rounds to go on", own, all,
                     loaded.path);
}

std::string places_of(const CheckpointOptions& places) {
  return places.folder + (places.to.empty() ? "" : " and " + places.to);
}

constexpr const char* kAnew = "once with anew (--anew; in Python anew=True or TRADEWIND_ANEW=1)";

}  // namespace

Resumption::Resumption(Core& core, Checkpoints& checkpoints, Recovery& recovery)
    : core_(core), checkpoints_(checkpoints), recovery_(recovery), held_(core.options.run.patience) {}

// ---- what is left of the run from before this process

void Resumption::tick() {
  if (stands_at_the_end_) return;
  const Instant now = core_.clock.now();
  ReturnWait& returning = recovery_.returning();
  const bool fresh = core_.swarm.peer_state() == wire::PeerState::fresh;
  if (returning.stage() == ReturnWait::Stage::waiting) fresh ? ask_for_checkpoints(now) : returning.end();
  if (has_no_checkpoint_ && returning.stage() == ReturnWait::Stage::waiting)
    returning.keep_trouble(core_.unasked.empty() ? lost_text() : unasked_text());
  if (!returning.is_over(now) || lets_another_resume(now)) return;
  ReturnWait::Rest rest = returning.give_up();
  if (rest.checkpoint) return resume(std::move(rest.checkpoint->image));
  if (!rest.trouble.empty()) return core_.departure.fail(rest.trouble, ending_with(rest.trouble));
  core_.swarm.go_on_alone(now);
}

/// What to say if neither a peer with the state nor a checkpoint is found. Empty: no log shows rounds of it.
std::string Resumption::lost_text() const {
  if (core_.options.past_rounds == 0) return {};
  const CheckpointOptions& places = core_.options.run.checkpoint;
  return fmt::format(
      "{} rounds of this run are lost ({}): no peer with its state was reached, and {}. To train again from "
      "round 1, start this peer {}",
      core_.options.past_rounds, core_.options.past_found,
      places.folder.empty() ? "checkpoint.folder is none" : "no checkpoint is in " + places_of(places),
      kAnew);
}

/// The peers of the run may live where this one could not look.
std::string Resumption::unasked_text() const {
  return "whether a peer of the run lives is not known: " + core_.unasked;
}

/// Another start may reach them.
Ending Resumption::ending_with(const std::string& trouble) const {
  if (!core_.unasked.empty() && trouble == unasked_text()) return Ending::unreached;
  return trouble == lost_text() ? Ending::lost : Ending::failed;
}

void Resumption::begin() {
  if (core_.options.anew) return set_checkpoints_aside();
  if (core_.options.past == Past::begun) {
    const Duration patience = core_.options.run.patience;
    recovery_.returning().begin(
        core_.clock.now(), core_.unasked.empty() ? patience : std::max<Duration>(patience, kGiveUpJoining),
        core_.options.past_found);
  }
  if (!checkpoints_.are_kept()) return found_no_checkpoint();
  recovery_.replica().load();
  checkpoints_.load(core_.facts.digest(), [this](Checkpoints::Loaded& loaded) { found_checkpoints(loaded); });
}

/// The run begins anew: nobody resumes what there is.
void Resumption::set_checkpoints_aside() {
  if (!checkpoints_.are_kept()) return recovery_.begin_from_seed();
  recovery_.replica().load();
  checkpoints_.set_aside(core_.facts.digest(), [this](const Status& moved) {
    if (core_.departure.ended()) return;
    recovery_.replica().loaded_nothing();
    if (!moved) return core_.departure.fail(moved.error().message);
    if (core_.swarm.peer_state() == wire::PeerState::fresh) recovery_.begin_from_seed();
  });
}

void Resumption::found_no_checkpoint() {
  const std::string lost = lost_text();
  if (!lost.empty() && core_.options.past == Past::over) return core_.departure.fail(lost, Ending::lost);
  has_no_checkpoint_ = true;
  ReturnWait& returning = recovery_.returning();
  if (returning.stage() == ReturnWait::Stage::waiting)
    returning.keep_trouble(core_.unasked.empty() ? lost : unasked_text());
  wait_for_others({});
  recovery_.begin_from_seed();
}

void Resumption::found_checkpoints(Checkpoints::Loaded& loaded) {
  if (core_.departure.ended()) return;
  recovery_.replica().loaded_nothing();
  if (loaded.ok() && loaded.value()) return take_checkpoint(std::move(*loaded.value()));
  if (core_.swarm.peer_state() != wire::PeerState::fresh) return;  // others were found meanwhile
  if (!loaded.ok()) {
    if (core_.options.past == Past::over) return core_.departure.fail(loaded.error().message);
    recovery_.returning().keep_trouble(loaded.error().message);
    wait_for_others("whether it has checkpoints is not known: " + loaded.error().message);
  } else {
    found_no_checkpoint();
  }
}

// A run that has ended goes on when what ended it was changed. One with as many rounds as it is to have has
// ended, too, although it was to have more when they were decided.
bool Resumption::goes_on_after(const sync::LoadedCheckpoint& loaded) const {
  return rounds_of(loaded) < core_.options.run.rounds &&
         (!loaded.image.record.last || loaded.words.end != core_.facts.words().end);
}

/// The run ends with this checkpoint, and does not begin again after it: what was lost, or paid for, is not
/// trained again.
bool Resumption::ends_with(const sync::LoadedCheckpoint& loaded) const {
  return !goes_on_after(loaded) && !begins_again_after(loaded);
}

/// Where nobody chose the folder, the same command after a complete run is a new one, unless something says
/// that it was started again.
bool Resumption::begins_again_after(const sync::LoadedCheckpoint& loaded) const {
  const RunOptions& run = core_.options.run;
  const bool is_complete = loaded.image.record.last && !goes_on_after(loaded) &&
                           (rounds_of(loaded) >= run.rounds || !run.budget.drains());
  return is_complete && core_.options.run.checkpoint.is_usual && core_.options.past != Past::begun;
}

/// The checkpoint is that of a run that is over: the program gets its parameters.
void Resumption::stand_at_the_end(sync::LoadedCheckpoint loaded) {
  const std::string why = over_text(loaded, core_.options.run);
  if (core_.options.when_complete == WhenComplete::ends) return core_.departure.end(why);
  stands_at_the_end_ = true;
  // owners: the job, and its `done`
  const auto image = std::make_shared<const sync::StateImage>(std::move(loaded.image));
  core_.worker.restore(image, [this, image, why](const Result<Digest>& parameters) {
    if (core_.departure.ended()) return;
    if (!parameters) return core_.departure.fail(parameters.error().message);
    end_ = image->record;
    core_.departure.end(why);
  });
}

void Resumption::found_nobody(std::string why, Ending ending) {
  if (stands_at_the_end_) return;
  const SessionOptions& options = core_.options;
  const bool looks = options.when_complete == WhenComplete::takes_end && !options.anew;
  const auto fail = [this, why = std::move(why), ending] { core_.departure.fail(why, ending); };
  if (!looks) return fail();
  look_for_the_end([this](const sync::LoadedCheckpoint& loaded) { return ends_with(loaded); }, fail);
}

void Resumption::came_too_late(const std::string& why) {
  if (core_.options.when_complete == WhenComplete::ends) return core_.departure.end(why);
  const auto is_end = [this](const sync::LoadedCheckpoint& loaded) { return !goes_on_after(loaded); };
  look_for_the_end(is_end, [this, why] {
    const bool leaves = core_.departure.stage() != Departure::Stage::running;
    leaves ? core_.departure.end(why) : core_.departure.fail(why);
  });
}

/// otherwise: called where there is no such checkpoint.
void Resumption::look_for_the_end(std::function<bool(const sync::LoadedCheckpoint&)> is_end,
                                  std::function<void()> otherwise) {
  if (!checkpoints_.are_kept()) return otherwise();
  const auto found = [this, state = core_.swarm.peer_state(), is_end = std::move(is_end),
                      otherwise = std::move(otherwise)](Checkpoints::Loaded& loaded) {
    if (core_.departure.ended() || core_.swarm.peer_state() != state) return;  // others were found meanwhile
    const bool is_there = loaded.ok() && loaded.value() && is_end(*loaded.value());
    is_there ? stand_at_the_end(std::move(*loaded.value())) : otherwise();
  };
  checkpoints_.load(core_.facts.digest(), found);
}

/// Nobody chose the folder: the same command is a new run.
void Resumption::begin_again(Round round) {
  core_.events.emit(
      {.round = round,
       .why = fmt::format("the run was over in round {}, and begins again: its checkpoints in {} get names "
                          "that end with .old",
                          round, places_of(core_.options.run.checkpoint)),
       .fact = event::Checkpoint{.cause = event::Cause::skipped}});
  set_checkpoints_aside();
}

void Resumption::take_checkpoint(sync::LoadedCheckpoint loaded) {
  const wire::Record& record = loaded.image.record;
  for (const std::string& skipped : loaded.skipped) {
    core_.events.emit(
        {.round = record.round, .why = skipped, .fact = event::Checkpoint{.cause = event::Cause::skipped}});
  }
  if (core_.swarm.peer_state() != wire::PeerState::fresh) return;  // others were found already
  if (ends_with(loaded)) return stand_at_the_end(std::move(loaded));
  if (begins_again_after(loaded)) return begin_again(record.round);
  for (const wire::Member& member : record.members)
    if (member.address != core_.address) core_.swarm.membership().roster().learn(member);
  const bool waited =
      core_.options.past == Past::begun && recovery_.returning().stage() == ReturnWait::Stage::off;
  if (waited || core_.options.past == Past::over) return resume(std::move(loaded.image));
  recovery_.returning().keep(std::move(loaded));
  wait_for_others("its checkpoints are in " + places_of(core_.options.run.checkpoint));
}

/// found: a sign besides the options that the run had begun; empty: none.
void Resumption::wait_for_others(std::string found) {
  const Instant now = core_.clock.now();
  ReturnWait& returning = recovery_.returning();
  if (returning.stage() == ReturnWait::Stage::off && core_.options.past == Past::unknown && !found.empty())
    returning.begin(now, core_.options.run.patience, std::move(found));
  if (returning.stage() == ReturnWait::Stage::waiting)
    core_.events.emit({.why = text_of(returning.waiting(now)), .fact = event::Wait{.seconds = 0}});
}

// ---- what the peers hold that wait together

void Resumption::ask_for_checkpoints(Instant now) {
  for (const PeerId peer : held_.due(now, core_.swarm.view().membership.roster().open_peers()))
    core_.network.send(peer, encode(wire::AskCheckpoint{}));
}

/// The wait for the others is over: the newest checkpoint of all goes on. True while another peer is to
/// resume, or may have to.
bool Resumption::lets_another_resume(Instant now) {
  HeldElsewhere& held = held_;
  if (held.awaits_answers(now)) return true;
  const auto heir = held.heir(now, recovery_.returning().checkpoint());
  if (!heir) return false;
  if (heir->is_due) core_.network.send(heir->peer, encode(wire::AskCheckpoint{digest_of(heir->record)}));
  return true;
}

bool Resumption::on_message(PeerId from, const wire::Message& message) {
  if (const auto* ask = std::get_if<wire::AskCheckpoint>(&message)) {
    answer(from, *ask);
  } else if (const auto* held = std::get_if<wire::HeldCheckpoint>(&message)) {
    if (!held->record || held->record->run == core_.facts.digest()) held_.on_answer(from, *held);
  } else {
    return false;
  }
  return true;
}

/// Nothing while it is busy with its beginning: it is asked again.
void Resumption::answer(PeerId from, const wire::AskCheckpoint& ask) {
  const bool free = core_.swarm.peer_state() == wire::PeerState::fresh &&
                    core_.worker.state() == Worker::State::idle &&
                    core_.waits.disk().current().kind == swarm::Wait::Kind::nothing;
  if (!free) return;
  if (!checkpoints_.are_kept() || core_.options.founds())
    return core_.network.send(from, encode(wire::HeldCheckpoint{}));
  checkpoints_.load(core_.facts.digest(), [this, from, ask](Checkpoints::Loaded& loaded) {
    if (core_.departure.ended() || core_.swarm.peer_state() != wire::PeerState::fresh) return;
    wire::HeldCheckpoint held;
    if (loaded.ok() && loaded.value() && goes_on_after(*loaded.value())) {
      held = {loaded.value()->image.record, loaded.value()->origin};
      if (ask.resume == digest_of(*held.record)) return resume(std::move(loaded.value()->image));
    }
    core_.network.send(from, encode(held));
  });
}

void Resumption::resume(sync::StateImage checkpoint) {
  if (core_.options.run.checkpoint.is_usual && core_.options.past != Past::begun)
    core_.events.emit(
        {.round = checkpoint.record.round,
         .why = fmt::format(
             "goes on from the checkpoint of round {} in {}; to train again from round 1, start it {}",
             checkpoint.record.round, places_of(core_.options.run.checkpoint), kAnew),
         .fact = event::Warn{}});
  recovery_.resume(std::move(checkpoint));
}

}  // namespace tw::train
