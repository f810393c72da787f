// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "average/fragments.h"
#include "average/reduction/gradient_sum.h"
#include "base/digest.h"
#include "base/result.h"
#include "swarm/leases/work.h"
#include "sync/image.h"
#include "train/learn/model.h"

namespace tw::train {

struct ModelSize {
  std::uint64_t parameters = 0;                        ///< floats
  std::uint64_t state_bytes = 0;                       ///< of an image: parameters and optimizer
  average::Fragments fragments = average::Geometry{};  ///< of the vector, as rounds average it
};

/// The mean of a round, to be applied.
struct Update {
  wire::Record record;
  std::vector<Blob> mean;                 ///< as it crossed the wire, a segment each
  std::vector<wire::Contribution> own{};  ///< those in it that this peer made
  bool missed = false;                    ///< this peer took no part in the round: is it the record's mean?
  /// The contributions in `own` that another peer computed (slots from wire::kLeaseSlots on).
  std::map<std::uint32_t, average::GradientSum> kept{};
};

/// What a slot adds to the mean.
struct SlotValues {
  average::GradientSum sum;
  std::span<const float> residual{};  ///< average/reduction/residual.h; empty: none
};

/// The door to a model: runs its jobs one after the other, in order, on whichever thread is the compute
/// thread. All calls come on the loop thread, and so does each `done`, with the time that the job itself
/// took. A learner that is destroyed may drop the rest of its jobs, or call their `done` later.
class Learner {
 public:
  template <class R>
  using Done = std::function<void(R result, Duration took)>;
  // owners: the donor, the checkpoint writer, and jobs under way
  using Image = std::shared_ptr<const sync::StateImage>;

  explicit Learner(ModelSize size) : size_(std::move(size)) {}

  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  const ModelSize& size() const { return size_; }

  /// Microbatches computed at once: the most that an item has. 0: not known yet; an item is a whole lease.
  virtual std::uint64_t grain() const { return 1; }

  /// Adds the gradients of an item to its slot, which begins at zero in each round.
  virtual void work(const swarm::WorkItem& item, Done<WorkDone> done) = 0;

  /// Cancels the given item: nothing of it is computed, and its `done` is not called. False: too late, or not
  /// possible.
  virtual bool take_back() { return false; }

  /// Executor::deserted_for of the compute thread.
  virtual Duration deserted_for() const { return {}; }

  /// Whether others are here that could do this peer's part. A program that is alone is waited for.
  virtual void set_company(bool /*is_here*/) {}

  /// Called when the compute thread reaches this job.
  virtual void knock(Done<Unit> done) = 0;

  /// A contribution of this round lacks something: the model has a part of a sum, or losses of the fragment's
  /// last turn are owed. Once false, the sums of all work that is done for the round are complete.
  virtual bool has_uncollected(Round round) const = 0;

  /// Adds what a contribution of this round lacks.
  virtual void collect(Round round, Done<Unit> done) = 0;

  /// The sum of a slot whose work is done and collected, of the round's fragment: valid and unchanged until
  /// the update of its round.
  virtual SlotValues contribution(Round round, std::uint32_t slot) = 0;

  /// Drops the sums in the slots: they begin at zero, whatever the round. Not while an item is computed. The
  /// state is that after this round.
  virtual void forget_sums(Round round) = 0;

  /// With overlap: the update that is late, if there is one.
  virtual void move_on(Done<Unit> done) = 0;

  /// The state is beyond that after its record: move_on() came, or a state that others had moved on was
  /// restored.
  virtual bool has_moved_on() const = 0;

  /// A new history begins after this record with the state as it is. Result: the digest of the parameters.
  /// Not while an update is in the queue.
  virtual Digest settle(const wire::Record& anew) = 0;

  /// Updates the state with a mean, by one step of the optimizer; with overlap, by that of the mean before.
  /// Result: the digest of the parameters; an error only of a missed round, and then nothing has changed.
  virtual void apply(Update update, Done<Result<Digest>> done) = 0;

  enum class Turn {
    in_order,  ///< after the jobs that were given before
    beside,    ///< at once; null when an update was given meanwhile
  };

  /// Copies the state, which is that after this record.
  virtual void freeze(const wire::Record& record, Turn turn, Done<Image> done) = 0;

  /// Restores a state of other peers; null: the initial state of the run. Result: the digest of the
  /// parameters; after an error the state is undefined.
  virtual void restore(Image image, Done<Result<Digest>> done) = 0;

 private:
  ModelSize size_;
};

}  // namespace tw::train
