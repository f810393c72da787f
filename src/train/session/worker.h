// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "train/learn/learner.h"
#include "train/session/waits.h"
#include "world/clock.h"

namespace tw::train {

/// The queue to the learner of a peer: the job under way, the speed of microbatches, and this peer's work in
/// the round. Loop thread only. No `done` is called after this object is destroyed.
class Worker {
 public:
  /// State of the job under way, the first one of the queue.
  enum class State {
    idle,
    initialising,
    computing,
    collecting,  ///< what the model has of a sum
    away,        ///< the compute thread belongs to a program and has not come back
    applying,    ///< the update of a round that this peer took part in
    moving_on,   ///< with overlap: the update that is late
    replaying,   ///< the update of a round that it missed
    freezing,
    restoring,
  };

  /// Clock and waits outlive this object. waits: records the jobs. then: called after each `done`.
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

  /// Updates with the means of records. The late one is another job.
  std::size_t updates_under_way() const { return jobs(State::applying); }

  /// Where the thread is, as others have to know. Its updates decide: they wait for it, or one takes long.
  wire::Presence presence(Instant now) const;

  /// Others do this peer's part: its thread is away.
  bool is_elsewhere() const { return paused_since_ || jobs(State::away) > 0; }

  /// Its owner has announced that the thread is busy, since then.
  std::optional<Instant> paused_since() const { return paused_since_; }

  /// No update of its own is under way, and the compute thread is not away.
  bool stands_ready() const;

  /// With overlap: the state is, or will be, beyond that after the last record (Learner::move_on).
  bool has_moved_on() const { return moves_on_ || learner_->has_moved_on(); }

  /// Learner::settle. Once it has moved on: not while a job is in the queue.
  Digest settle(const wire::Record& anew);

  /// A state of others, or an update that this peer missed, is being applied.
  bool is_taking_over() const { return jobs(State::restoring) + jobs(State::replaying) > 0; }

  // ---- jobs; took: what the job itself took

  void initialise(std::function<void(const Digest&)> done);

  /// Microbatches that an item may have.
  std::uint64_t grain() const { return learner_->grain(); }

  /// Not while another item is in the queue. Before an item that has moved on comes the update that is late.
  void work(const swarm::WorkItem& item, std::function<void(const WorkDone& did)> done);

  /// Learner::set_company.
  void set_company(bool is_here) { learner_->set_company(is_here); }

  /// If the compute thread belongs to a program and is late: the item that was not begun, which is cancelled.
  /// The worker is_elsewhere() until the thread comes back.
  std::optional<swarm::WorkItem> take_back_when_late(Instant now);

  /// The owner of the compute thread announces that it is busy until resume(). Returns the item that was not
  /// begun, if any.
  std::optional<swarm::WorkItem> pause();

  void resume() { paused_since_.reset(); }

  /// Not missed.
  void apply(Update update, std::function<void(const Digest&, Duration)> done);

  /// Missed.
  void replay(Update update, std::function<void(const Result<Digest>&)> done);

  void restore(Learner::Image image, std::function<void(const Result<Digest>&)> done);

  void freeze(const wire::Record& record, std::function<void(const Learner::Image&)> done);

  /// For a joiner, which does not wait for microbatches: null when an update came in between.
  void freeze_soon(const wire::Record& record, std::function<void(const Learner::Image&)> done);

  // ---- slots

  /// Whether the sums of all work done for this round are complete. If not, they are collected, and `done` of
  /// the first such call is called then.
  bool collect(Round round, std::function<void()> done);

  SlotValues contribution(Round round, std::uint32_t slot) { return learner_->contribution(round, slot); }

  /// Not while it computes. The state is that after this round.
  void forget_sums(Round round);

  // ---- results

  /// Counts from now on for this round; 0: for none.
  void open(Round round);

  /// This peer's work in the round.
  struct Done {
    std::uint64_t samples = 0;
    double loss_sum = 0;
    std::uint64_t loss_samples = 0;  ///< those whose loss is known
    Instant since{};                 ///< its first microbatch was given
    Instant until{};                 ///< its last microbatch
    Duration work{};                 ///< in microbatches
    double data_s = 0;               ///< of that, waiting for data, as far as the program said so
    std::vector<data::MissingSample> skipped{};
    std::uint64_t missing = 0;  ///< items not computed because a sample cannot be read
  };

  const Done& done() const { return done_; }

  /// The same in this round or, with overlap, the next one.
  const Done& done_of(Round round) const { return round == round_ ? done_ : next_done_; }

  /// Smoothed; 0 before the first microbatch.
  double samples_per_s() const { return samples_per_s_; }

 private:
  Duration late_after() const;
  bool is_deserted(Instant now) const;
  bool has_late_update(Instant now) const;

  /// `done` of a job that goes into the queue now.
  template <class R>
  Learner::Done<R> queued(State kind, swarm::Wait what, Learner::Done<R> done);
  void finish(State kind, std::optional<Duration> took);
  std::optional<swarm::WorkItem> take_back();
  void move_on();
  Done* done_in(Round round);  ///< null: of an earlier round
  void add(const WorkDone& did, Duration took, Done& done) const;

  std::unique_ptr<Learner> learner_;
  Surroundings surroundings_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // owners: this; jobs hold it weakly
  std::deque<State> queue_;
  swarm::WorkItem item_;  ///< while it computes
  std::optional<Instant> paused_since_;
  Round round_ = 0;
  Done done_, next_done_;
  bool moves_on_ = false;  ///< move_on() came since the last update
  double samples_per_s_ = 0;
};

/// The state is about to change by an update, also by one that is late.
inline bool is_updating(const Worker& worker) {
  return worker.jobs(Worker::State::applying) + worker.jobs(Worker::State::moving_on) > 0;
}

inline bool Worker::stands_ready() const { return !is_updating(*this) && jobs(State::away) == 0; }

}  // namespace tw::train
