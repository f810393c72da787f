// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "train/learn/learner.h"
#include "train/session/waits.h"
#include "world/clock.h"

namespace tw::train {

/// The queue to the learner of a peer: which job is under way, how fast microbatches are done, and what this
/// peer did in the round. Loop thread only. No `done` comes once this object is gone.
class Worker {
 public:
  /// What the job under way does: the first one of the queue.
  enum class State {
    idle,
    initialising,
    computing,
    away,       ///< the thread that computes belongs to somebody else, and has not come back
    applying,   ///< the update of a round that this peer took part in
    replaying,  ///< of one that it missed
    evaluating,
    freezing,
    restoring,
  };

  /// Clock and waits outlive this object. waits: is told of the jobs. then: after each `done`.
  struct Surroundings {
    world::Clock& clock;
    Waits& waits;
    std::function<void()> then;
    std::function<void()> back{};  ///< the compute thread was away
  };

  Worker(std::unique_ptr<Learner> learner, Surroundings surroundings);

  const ModelSize& size() const { return learner_->size(); }

  State state() const { return queue_.empty() ? State::idle : queue_.front(); }

  /// Jobs of this kind in the queue.
  std::size_t jobs(State kind) const;

  bool is_computing() const { return jobs(State::computing) > 0; }

  std::size_t updates_under_way() const { return jobs(State::applying); }

  /// Others do this peer's part: it evaluates, or its thread is elsewhere.
  bool is_elsewhere() const { return paused_ || jobs(State::evaluating) + jobs(State::away) > 0; }

  /// No update of its own is under way, and the compute thread is here.
  bool stands_ready() const { return updates_under_way() == 0 && jobs(State::away) == 0; }

  /// The state of others, or what they decided without this peer, is put in place.
  bool is_taking_over() const { return jobs(State::restoring) + jobs(State::replaying) > 0; }

  // ---- jobs; took: what the job itself took

  void initialise(std::function<void(const Digest&)> done);

  /// Samples that are leased to this peer, done ones aside.
  void expect(const RangeSet& samples) {
    if (samples != expected_) learner_->expect(expected_ = samples);
  }

  /// Samples that the job under way has waited for so long that somebody should know.
  std::optional<data::LoadWait> waiting_for_data() const;

  /// Microbatches that an item may have.
  std::uint64_t grain() const { return learner_->grain(); }

  /// Not while another item is in the queue.
  void work(const swarm::WorkItem& item, std::function<void(const WorkDone& did)> done);

  /// Where the compute thread belongs to somebody else and is long in coming: the item of which nothing was
  /// done, and never will be. The worker is_elsewhere() until the thread comes back.
  std::optional<swarm::WorkItem> take_back_when_late(Instant now);

  /// An update has waited long for a thread that is elsewhere: nobody knows when it will be applied.
  bool is_stuck(Instant now) const;

  /// The owner of the compute thread says that it does something else until resume(). The item of which
  /// nothing was done, if any.
  std::optional<swarm::WorkItem> pause();

  void resume() { paused_ = false; }

  /// Not missed.
  void apply(Update update, std::function<void(const Digest&, Duration)> done);

  /// Missed.
  void replay(Update update, std::function<void(const Result<Digest>&)> done);

  void restore(Learner::Image image, std::function<void(const Result<Digest>&)> done);

  void evaluate(Round round, std::function<void(const Evaluation&, Duration)> done);

  void freeze(const wire::Record& record, std::function<void(const Learner::Image&)> done);

  /// For a joiner, which waits neither for microbatches nor for evaluations where neither state nor disk
  /// changes: null when an update came in between.
  void freeze_soon(const wire::Record& record, std::function<void(const Learner::Image&)> done);

  // ---- slots

  SlotValues contribution(std::uint32_t slot) { return learner_->contribution(slot); }

  /// Not while it computes.
  void forget_sums();

  // ---- results

  /// What is counted from now on is of this round; 0: of none.
  void open(Round round);

  /// What this peer did in the round.
  struct Done {
    std::uint64_t samples = 0;
    double loss_sum = 0;
    Instant until{};  ///< its last microbatch
    data::LoadNews news{};
    std::uint64_t missing = 0;  ///< items of which nothing was done, since a sample cannot be had
  };

  const Done& done() const { return done_; }

  /// Smoothed; 0 before the first microbatch.
  double samples_per_s() const { return samples_per_s_; }

 private:
  swarm::Wait freezing(const wire::Record& record) const;

  /// `done` of a job that goes into the queue now.
  template <class R>
  Learner::Done<R> queued(State kind, swarm::Wait what, Learner::Done<R> done);
  void finish(State kind, Duration took);
  std::optional<swarm::WorkItem> take_back();

  std::unique_ptr<Learner> learner_;
  Surroundings surroundings_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // owners: this; jobs hold it weakly
  std::deque<State> queue_;
  swarm::WorkItem item_;  ///< while it computes
  RangeSet expected_;
  bool paused_ = false;
  Round round_ = 0;
  Done done_;
  double samples_per_s_ = 0;
};

}  // namespace tw::train
