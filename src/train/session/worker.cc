// SPDX-License-Identifier: Apache-2.0
#include "train/session/worker.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "train/session/session.h"

namespace tw::train {
namespace {

using swarm::Wait;

/// A program's thread counts as away after this many usual steps, and at least the time below.
constexpr int kUsualSteps = 4;
constexpr Duration kAwayAfter = std::chrono::seconds(1);

/// The first one compiles and warms up. Where others compute already, nobody waits for that.
constexpr Duration kFirstStep = std::chrono::seconds(10);

/// For callers that do not need the time.
auto untimed(std::function<void(const Result<Digest>&)> done) {
  return [done = std::move(done)](const Result<Digest>& parameters, Duration) { done(parameters); };
}

Wait freezing(const wire::Record& record, const ModelSize& size) {
  return {.kind = Wait::Kind::freezing, .round = record.round, .total = size.state_bytes};
}

}  // namespace

Worker::Worker(std::unique_ptr<Learner> learner, Surroundings surroundings)
    : learner_(std::move(learner)), surroundings_(std::move(surroundings)) {
  TW_CHECK(learner_ != nullptr);
}

std::size_t Worker::jobs(State kind) const {
  return static_cast<std::size_t>(std::ranges::count(queue_, kind));
}

template <class R>
Learner::Done<R> Worker::queued(State kind, Wait what, Learner::Done<R> done) {
  TW_CHECK(kind != State::idle);
  queue_.push_back(kind);
  surroundings_.waits.compute().submitted(surroundings_.clock.now(), std::move(what));
  return [this, alive = std::weak_ptr<int>(alive_), kind, done = std::move(done)](R result, Duration took) {
    if (alive.expired()) return;
    bool did = true;
    if constexpr (std::is_same_v<R, WorkDone>) did = result.microbatches > 0;
    finish(kind, did ? std::optional(took) : std::nullopt);
    done(std::move(result), took);
    surroundings_.then();
  };
}

// An order that a program gives back says nothing about how long a step takes.
void Worker::finish(State kind, std::optional<Duration> took) {
  TW_CHECK(state() == kind);
  queue_.pop_front();
  const Instant now = surroundings_.clock.now();
  OwnWork& work = surroundings_.waits.compute();
  took ? work.finished(now, *took) : work.dropped(now, 0);
}

void Worker::initialise(std::function<void(const Digest&)> done) {
  learner_->restore(
      nullptr, queued<Result<Digest>>(State::initialising, {Wait::Kind::initialising},
                                      [done = std::move(done)](const Result<Digest>& parameters, Duration) {
                                        TW_CHECK(parameters.ok());
                                        done(parameters.value());
                                      }));
}

void Worker::work(const swarm::WorkItem& item, std::function<void(const WorkDone&)> done) {
  TW_CHECK(!is_computing());
  item_ = item;
  if (item.moved_on && !moves_on_) move_on();
  if (Done* const of_round = done_in(item.round); of_round != nullptr && of_round->since == Instant{})
    of_round->since = surroundings_.clock.now();
  const auto finished = [this, round = item.round, done = std::move(done)](const WorkDone& did,
                                                                           Duration took) {
    const double speed = static_cast<double>(did.samples) / std::max(1e-9, to_seconds(took));
    if (did.samples > 0)
      samples_per_s_ = samples_per_s_ == 0 ? speed : samples_per_s_ + (speed - samples_per_s_) / 4;
    if (Done* const of_round = done_in(round)) add(did, took, *of_round);
    done(did);
  };
  const Wait what{.kind = Wait::Kind::computing, .round = item.round, .done = done_.samples};
  learner_->work(item, queued<WorkDone>(State::computing, what, finished));
}

Worker::Done* Worker::done_in(Round round) {
  if (round == round_) return &done_;
  return round == round_ + 1 ? &next_done_ : nullptr;
}

void Worker::add(const WorkDone& did, Duration took, Done& done) const {
  done.until = surroundings_.clock.now();
  done.work += took;
  done.data_s += std::min(did.data_s, to_seconds(took));
  if (std::isfinite(did.loss_sum)) {  // a program need not know it
    done.loss_sum += did.loss_sum;
    done.loss_samples += did.samples;
  }
  done.samples += did.samples;
  done.missing += did.missing ? 1 : 0;
  done.skipped.insert(done.skipped.end(), did.skipped.begin(), did.skipped.end());
}

void Worker::move_on() {
  moves_on_ = true;
  const Wait what{.kind = Wait::Kind::applying, .round = round_ - std::min<Round>(round_, 1)};
  learner_->move_on(queued<Unit>(State::moving_on, what, [](Unit, Duration) {}));
}

Digest Worker::settle(const wire::Record& anew) {
  TW_CHECK(!has_moved_on() || queue_.empty());
  moves_on_ = false;
  return learner_->settle(anew);
}

std::optional<swarm::WorkItem> Worker::take_back() {
  const auto computing = std::ranges::find(queue_, State::computing);
  if (computing == queue_.end() || !learner_->take_back()) return std::nullopt;
  surroundings_.waits.compute().dropped(surroundings_.clock.now(),
                                        static_cast<std::size_t>(computing - queue_.begin()));
  queue_.erase(computing);
  return std::exchange(item_, {});
}

std::optional<swarm::WorkItem> Worker::take_back_when_late(Instant now) {
  if (!is_deserted(now)) return std::nullopt;
  OwnWork& work = surroundings_.waits.compute();
  // A first step that was taken back says how long one takes. A later one has twice the time the next time:
  // if the machine has become slow, no step would ever count.
  const bool first = work.usual(Wait::Kind::computing) == Duration{};
  const Duration most = first ? Duration::max() : 2 * late_after() / kUsualSteps;
  const auto back = [this, since = work.since(), most](const Unit&, Duration) {
    const Duration took = surroundings_.clock.now() - since;
    surroundings_.waits.compute().expect(Wait::Kind::computing, std::min(took, most));
    surroundings_.back();
  };
  const std::optional<swarm::WorkItem> item = take_back();
  if (item) learner_->knock(queued<Unit>(State::away, {Wait::Kind::away}, back));
  return item;
}

Duration Worker::late_after() const {
  const Duration usual = surroundings_.waits.compute().usual(Wait::Kind::computing);
  if (usual == Duration{} && round_ <= 1) return kFirstStep;
  return std::max<Duration>(kAwayAfter, kUsualSteps * usual);
}

// Jobs wait, and the thread has been elsewhere for longer than its steps take.
bool Worker::is_deserted(Instant now) const {
  const Instant since = surroundings_.waits.compute().since();
  return std::min<Duration>(learner_->deserted_for(), now - since) > late_after();
}

wire::Presence Worker::presence(Instant now) const {
  if (updates_under_way() >= SessionView::kMostWaitingUpdates) return wire::Presence::full;
  if (paused_since_ || jobs(State::away) > 0 || is_deserted(now) || has_late_update(now))
    return wire::Presence::away;
  return wire::Presence::here;
}

// Or the copy before it takes long.
bool Worker::has_late_update(Instant now) const {
  if (!is_updating(*this)) return false;
  const OwnWork& work = surroundings_.waits.compute();
  return now - work.since() > std::max<Duration>(kAwayAfter, kUsualSteps * work.usual(work.current().kind));
}

std::optional<swarm::WorkItem> Worker::pause() {
  if (!paused_since_) paused_since_ = surroundings_.clock.now();
  return take_back();
}

void Worker::apply(Update update, std::function<void(const Digest&, Duration)> done) {
  moves_on_ = false;
  TW_CHECK(!update.missed);
  const Wait what{.kind = Wait::Kind::applying, .round = update.record.round};
  const auto finished = [done = std::move(done)](const Result<Digest>& parameters, Duration took) {
    TW_CHECK(parameters.ok());
    done(parameters.value(), took);
  };
  learner_->apply(std::move(update), queued<Result<Digest>>(State::applying, what, finished));
}

void Worker::replay(Update update, std::function<void(const Result<Digest>&)> done) {
  moves_on_ = false;
  TW_CHECK(update.missed);
  const Wait what{.kind = Wait::Kind::applying, .round = update.record.round};
  learner_->apply(std::move(update),
                  queued<Result<Digest>>(State::replaying, what, untimed(std::move(done))));
}

void Worker::restore(Learner::Image image, std::function<void(const Result<Digest>&)> done) {
  moves_on_ = false;
  TW_CHECK(image != nullptr);
  const Wait what{.kind = Wait::Kind::restoring, .round = image->record.round, .total = image->bytes()};
  learner_->restore(std::move(image),
                    queued<Result<Digest>>(State::restoring, what, untimed(std::move(done))));
}

void Worker::freeze(const wire::Record& record, std::function<void(const Learner::Image&)> done) {
  const auto finished = [done = std::move(done)](const Learner::Image& image, Duration) { done(image); };
  learner_->freeze(record, Learner::Turn::in_order,
                   queued<Learner::Image>(State::freezing, freezing(record, size()), finished));
}

void Worker::freeze_soon(const wire::Record& record, std::function<void(const Learner::Image&)> done) {
  OwnWork& disk = surroundings_.waits.disk();
  const bool stands_still = !is_updating(*this) && !is_taking_over();
  if (!stands_still || disk.current().kind != Wait::Kind::nothing) return freeze(record, std::move(done));
  disk.submitted(surroundings_.clock.now(), freezing(record, size()));
  const auto finished = [this, alive = std::weak_ptr<int>(alive_), done = std::move(done)](
                            const Learner::Image& image, Duration took) {
    if (alive.expired()) return;
    surroundings_.waits.disk().finished(surroundings_.clock.now(), took);
    done(image);
    surroundings_.then();
  };
  learner_->freeze(record, Learner::Turn::beside, finished);
}

bool Worker::collect(Round round, std::function<void()> done) {
  if (!learner_->has_uncollected(round)) return true;
  if (jobs(State::collecting) > 0) return false;
  const Wait what{.kind = Wait::Kind::collecting, .round = round};
  const auto collected = [done = std::move(done)](const Unit&, Duration) { done(); };
  learner_->collect(round, queued<Unit>(State::collecting, what, collected));
  return false;
}

void Worker::forget_sums(Round round) {
  TW_CHECK(!is_computing());
  learner_->forget_sums(round);
}

void Worker::open(Round round) {
  const Instant until = done_.until;
  done_ = round == round_ + 1 ? std::exchange(next_done_, {}) : Done{};
  next_done_ = {};
  round_ = round;
  if (done_.until == Instant{}) done_.until = until;
}

}  // namespace tw::train
