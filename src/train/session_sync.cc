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
  reduction_.reset();
  early_bulk_.clear();
  early_bytes_.clear();
  round_ = 0;
  called_at_ = kNever;
  catching_up_ = true;
  caught_up_since_ = doors_.clock.now();
  last_applied_at_ = kNever;  // if that record was the last one, it may not be so in the history that goes on
  ground_.step_back();
  if (updates_under_way_ == 0) begin_catch_up();
}

bool Session::Machine::has_history() const { return tip_ && tip_->record.run == run_; }

void Session::Machine::begin_catch_up() {
  const Round newest = swarm_->best_told().round;
  told_sources_done_ = false;
  if (has_history()) fetch_->keep_to(tip_->record);
  // Whose history it is shows in the offers: those of another one are none, and then the state is taken.
  const bool near =
      has_history() && newest > tip_->record.round && newest - tip_->record.round <= kReplayAtMost;
  if (near && !rarely(options_.rarely, "session.full_state")) {
    fetch_->want_mean(doors_.clock.now(), tip_->record, sources());
  } else {
    fetch_->want_state(doors_.clock.now(), sources());
  }
}

void Session::Machine::poll_fetch() {
  for (const Refusal& refusal : fetch_->take_refusals()) {
    emit_about(refusal.peer, Phase::refuse, round_, refusal.why);
  }
  if (!catching_up_) return;
  fetch_->set_sources(doors_.clock.now(), sources());
  if (std::optional<StateImage> image = fetch_->take_state()) {
    restore(std::move(*image), "other peers");
  } else if (std::optional<FetchedMean> mean = fetch_->take_mean()) {
    replay(std::move(*mean));
  } else if (fetch_->gone()) {
    ground_.start_over();
    fetch_->want_state(doors_.clock.now(), sources());
  }
  swarm_->catching_up(doors_.clock.now(), {ground_.lost(), fetch_->pieces()});
  if (ground_.lost() < kLostForGood) return;
  end("this peer's line is too slow for the run: " + std::to_string(kLostForGood) +
          " times the others went on faster than what they decided came here",
      true);
}

void Session::Machine::restore(StateImage image, const std::string& from) {
  restoring_ = true;
  const auto shared = std::make_shared<const StateImage>(std::move(image));  // owners: both halves of the job
  compute<Result<Digest>>(
      0, [shared](TrainState& state) { return state.restore(*shared); },
      [this, shared, from](const Result<Digest>& parameters, Duration) {
        restoring_ = false;
        if (!parameters.ok()) {
          emit(Phase::refuse, shared->record.round, parameters.error().message);
          fetch_->want_state(doors_.clock.now(), sources());
          return;
        }
        Event event{doors_.clock.now(), Phase::restore, shared->record.round};
        event.why = "from " + from;
        event.digest = to_string(parameters.value());
        event.numbers = {{"bytes", static_cast<double>(shared->bytes())},
                         {"took_s", to_seconds(doors_.clock.now() - caught_up_since_)}};
        doors_.events.emit(event);
        if (observer_ != nullptr) observer_->on_applied(shared->record, parameters.value(), true);
        go_on_from({shared->record, parameters.value()});
      });
}

void Session::Machine::replay(FetchedMean mean) {
  restoring_ = true;
  const auto shared = std::make_shared<const FetchedMean>(std::move(mean));  // owners: both halves of the job
  compute<Result<Digest>>(
      0,
      [shared, geometry = geometry_](TrainState& state) {
        return state.apply_missed(shared->record, geometry, shared->segments);
      },
      [this, shared](const Result<Digest>& parameters, Duration) {
        restoring_ = false;
        if (!parameters.ok()) {
          emit(Phase::refuse, shared->record.round, parameters.error().message);
          fetch_->want_state(doors_.clock.now(), sources());
          return;
        }
        Event event{doors_.clock.now(), Phase::apply, shared->record.round};
        event.digest = to_string(parameters.value());
        doors_.events.emit(event);
        if (observer_ != nullptr) observer_->on_applied(shared->record, parameters.value(), false);
        go_on_from({shared->record, parameters.value()});
      });
}

void Session::Machine::go_on_from(Tip tip) {
  tip_ = std::move(tip);
  const Record& record = tip_->record;
  fetch_->keep_to(record);
  if (const Rank best = swarm_->best_told(); goes_before(best, rank_of(record))) {
    ground_.come_to(record.round, best.round);
    fetch_->want_mean(doors_.clock.now(), record, sources());
    return;
  }
  catching_up_ = false;
  ground_.stand_at_head();
  last_applied_ = record.last;
  swarm_->begin(doors_.clock.now(), record, tip_->parameters);
}

// ---- giving
// ---------------------------------------------------------------------------------------------------

void Session::Machine::serve_images() {
  if (!donor_.wants_image() || freezing_ || catching_up_ || !tip_ || !swarm_->head()) return;
  freezing_ = true;
  // owners: donor, until nobody follows any more, and whoever is served from it
  using Shared = std::shared_ptr<const StateImage>;
  compute<Shared>(
      0,
      // owners: donor and its followers
      [record = tip_->record, bytes = options_.chunk_bytes](TrainState& state) {
        return std::make_shared<const StateImage>(state.freeze(record, bytes));  // owners: as above
      },
      [this](const Shared& image, Duration) {
        freezing_ = false;
        if (!catching_up_) donor_.give(image);
      });
}

// ---- checkpoints
// ----------------------------------------------------------------------------------------------

void Session::Machine::save_checkpoint(const Record& record) {
  if (record.last) ++last_jobs_;
  using Shared = std::shared_ptr<const StateImage>;  // owners: both halves of the disk job
  compute<Shared>(
      0,
      [record, bytes = options_.chunk_bytes](TrainState& state) {
        return std::make_shared<const StateImage>(
            state.freeze(record, bytes));  // owners: both halves of the disk job
      },
      [this, record](const Shared& image, Duration) {
        const auto saved = std::make_shared<std::optional<Status>>();  // owners: both halves of the disk job
        doors_.disk.submit({[store = checkpoints_, image, saved] { saved->emplace(store->save(*image)); },
                            [this, alive = std::weak_ptr<int>(alive_), record, saved](Duration took) {
                              if (alive.expired()) return;
                              const std::string why = (*saved)->ok() ? "" : (*saved)->error().message;
                              emit(Phase::checkpoint, record.round, why, {{"took_s", to_seconds(took)}});
                              if (record.last) --last_jobs_;
                              finish_when_done();
                              pump();
                            }});
      });
}

void Session::Machine::load_checkpoint() {
  using Loaded = Result<std::optional<LoadedCheckpoint>>;
  const auto loaded = std::make_shared<std::optional<Loaded>>();  // owners: both halves of the disk job
  doors_.disk.submit(
      {[store = checkpoints_, run = run_, loaded] { loaded->emplace(store->load_newest(run)); },
       [this, alive = std::weak_ptr<int>(alive_), loaded](Duration) {
         if (alive.expired()) return;
         Loaded& result = **loaded;
         if (!result.ok()) return end(result.error().message, true);
         if (!result.value()) {
           begin_history();
           return pump();
         }
         for (const std::string& skipped : result.value()->skipped) {
           emit(Phase::checkpoint, result.value()->image.record.round, skipped);
         }
         StateImage image = std::move(result.value()->image);
         if (image.record.last) {
           return end("the run is complete: its checkpoint is that of the last round", false);
         }
         image.record =
             restarted(image.record, {{options_.self, address_, options_.incarnation, options_.site}});
         catching_up_ = true;
         caught_up_since_ = doors_.clock.now();
         restore(std::move(image), "checkpoint");
         pump();
       }});
}

}  // namespace tw
