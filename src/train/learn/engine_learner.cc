// SPDX-License-Identifier: Apache-2.0
#include "train/learn/engine_learner.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace tw::train {
namespace {

/// run: away from the loop thread, with what it owns alone; done: on the loop thread, with its result.
template <class R>
world::Task task_of(std::function<R()> run, Learner::Done<R> done) {
  const auto result = std::make_shared<std::optional<R>>();  // owners: both halves of the job
  return {[run = std::move(run), result] { result->emplace(run()); },
          [done = std::move(done), result](Duration took) { done(*std::move(*result), took); }};
}

}  // namespace

EngineLearner::EngineLearner(Model& model, const Options& options, world::Executor& compute,
                             world::Executor& beside)
    // owners: as State says
    : EngineLearner(std::make_shared<TrainState>(model, options.run, options.fragments), options, compute,
                    beside) {}

EngineLearner::EngineLearner(State state, const Options& options, world::Executor& compute,
                             world::Executor& beside)
    : Learner({state->parts().front().size(), state->bytes(), options.fragments}),
      state_(std::move(state)),
      chunk_bytes_(options.chunk_bytes),
      grain_(options.grain),
      settles_losses_beside_(options.run.overlaps() && state_->feedback().is_on()),
      compute_(compute),
      beside_(beside) {
  TW_CHECK(grain_ > 0);
  TW_CHECK(options.fragments.length() == size().parameters);
}

void EngineLearner::work(const swarm::WorkItem& item, Done<WorkDone> done) {
  TW_CHECK(!item.samples.empty());
  world::Task task = task_of<WorkDone>([state = state_, item] { return state->work(item); }, std::move(done));
  task.weight = static_cast<double>(item.samples.count());
  task.gradient = true;
  compute_.submit(std::move(task));
}

void EngineLearner::knock(Done<Unit> done) {
  compute_.submit(task_of<Unit>([] { return Unit{}; }, std::move(done)));
}

SlotValues EngineLearner::contribution(Round round, std::uint32_t slot) {
  const auto& sum = state_->slot(round, slot).sum;
  TW_CHECK(sum != nullptr);
  return {{*sum, sum}, state_->feedback().carried(round, slot)};
}

void EngineLearner::collect(Round round, Done<Unit> done) {
  const auto run = [state = state_, round] {
    state->collect(round);
    return Unit{};
  };
  compute_.submit(task_of<Unit>(run, std::move(done)));
}

void EngineLearner::forget_sums(Round round) {
  state_->forget_sums();
  if (!state_->tells_of_sums()) return;
  const auto run = [state = state_, round] {
    state->begin_anew(round);
    return Unit{};
  };
  compute_.submit(task_of<Unit>(run, [](Unit, Duration) {}));
}

void EngineLearner::move_on(Done<Unit> done) {
  const auto run = [state = state_] {
    state->move_on();
    return Unit{};
  };
  compute_.submit(task_of<Unit>(run, std::move(done)));
}

// Where updates are late, nobody waits for the losses of a round before this fragment's next turn.
void EngineLearner::apply(Update update, Done<Result<Digest>> done) {
  const bool beside = settles_losses_beside_ && !update.missed;
  if (beside) state_->feedback().announce(update.record.round);
  const auto run = [state = state_, beside, update = std::move(update)]() -> Result<Digest> {
    if (update.missed) return state->apply_missed(update.record, update.mean);
    state->owe_losses(update.record.round, update.own, update.kept);
    if (!beside) state->feedback().settle();
    return state->take(update.record, update.mean);
  };
  compute_.submit(
      task_of<Result<Digest>>(run, beside ? then_settle_losses(std::move(done)) : std::move(done)));
}

Learner::Done<Result<Digest>> EngineLearner::then_settle_losses(Done<Result<Digest>> done) {
  return
      [state = state_, &beside = beside_, done = std::move(done)](Result<Digest> parameters, Duration took) {
        const auto run = [state] {
          state->feedback().settle();
          return Unit{};
        };
        beside.submit(task_of<Unit>(run, [](Unit, Duration) {}));
        done(std::move(parameters), took);
      };
}

void EngineLearner::freeze(const wire::Record& record, Turn turn, Done<Image> done) {
  if (turn == Turn::in_order || !state_->copies_beside()) {
    const auto run = [state = state_, record, bytes = chunk_bytes_] {
      return std::make_shared<const sync::StateImage>(state->freeze(record, bytes));  // owners: as Image says
    };
    return compute_.submit(task_of<Image>(run, std::move(done)));
  }
  const auto run = [state = state_, record, bytes = chunk_bytes_, version = state_->version()]() -> Image {
    std::optional<sync::StateImage> image = state->freeze(record, bytes, version);
    if (!image) return nullptr;
    return std::make_shared<const sync::StateImage>(*std::move(image));  // owners: as Image says
  };
  beside_.submit(task_of<Image>(run, std::move(done)));
}

void EngineLearner::restore(Image image, Done<Result<Digest>> done) {
  const auto run = [state = state_, image = std::move(image)]() -> Result<Digest> {
    if (!image) return state->initialise();
    return state->restore(*image);
  };
  compute_.submit(task_of<Result<Digest>>(run, std::move(done)));
}

}  // namespace tw::train
