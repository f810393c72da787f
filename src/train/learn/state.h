// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "average/fragments.h"
#include "average/reduction/reduction.h"
#include "base/digest.h"
#include "base/pages.h"
#include "base/range_set.h"
#include "base/result.h"
#include "sync/image.h"
#include "train/learn/compared_digest.h"
#include "train/learn/error_feedback.h"
#include "train/learn/model.h"
#include "train/learn/optimizer.h"
#include "train/run/run.h"
#include "wire/limits.h"

namespace tw::train {

/// The gradient sum of one slot. Written on the compute thread; read on the loop thread from the time it is
/// complete until its round is decided, when nothing writes to it.
struct GradientSlot {
  Round round = 0;  ///< round of the gradients in it
  // owners: the slot, and messages of that round that are still under way
  std::shared_ptr<std::vector<float>> sum;
};

/// A mean that waits for its update, as it crossed the wire, in a vector of fixed length that is copied with
/// the state. Once it is applied, the vector says so: the state has moved on from that after its record.
class LateMean {
 public:
  /// encoded: bytes of a mean; 0: no mean ever waits.
  explicit LateMean(std::size_t encoded);

  bool waits() const { return stage() == Stage::waits; }

  bool is_applied() const { return stage() == Stage::applied; }

  void keep(const wire::Record& record, std::span<const Blob> mean);

  /// It was applied. before: the digest of the parameters until then.
  void applied(const Digest& before);

  /// The digest that applied() was told.
  Digest before() const;

  void drop();

  /// The vector was filled with a copy: that of the state after this record. A run that begins anew from a
  /// record does so with the parameters as they are.
  void loaded(const wire::Record& record);

  /// Its segments. They refer to the vector.
  std::vector<Blob> segments(codec::Codec codec, const average::Geometry& geometry) const;

  const wire::Record& record() const { return record_; }

  std::span<float> values() { return values_; }

  std::size_t size() const { return values_.size(); }

 private:
  enum class Stage : std::uint8_t { none, waits, applied };

  /// What the vector has when it is applied: the digests of the parameters before, and of the record.
  using Word = std::array<Digest, 2>;

  Word word() const;
  Stage stage() const;
  void go_to(Stage stage);

  std::vector<float> values_;  // the stage, then bytes: of the mean, or a Word
  wire::Record record_;
};

/// What a program has around the state. Functions are called on the compute thread; each may be empty.
struct StateHooks {
  /// For the update of this round, with the settings of its record; empty: RunOptions::learning_rate for all.
  std::function<std::vector<GroupStep>(Round round, const std::string& settings)> settings{};
  /// Parameters and optimizer are those after this round. restored: they come from other peers or a
  /// checkpoint, or are the initial ones.
  std::function<void(Round round, bool restored)> changed{};
  /// They are about to be copied. With this hook, copies are made beside other work only of what write_out()
  /// has written.
  std::function<void()> about_to_copy{};
  /// The parameters are about to be read. Empty: they are always there.
  std::function<void()> about_to_digest{};
  std::size_t threads = 1;  ///< at most, for a job over the whole vector; the bits stay the same
};

/// Everything a peer trains with: parameters, optimizer, gradient slots. With RunOptions::overlaps() the
/// state after a record has that record's mean, too, which waits: it is applied when the next round is
/// called, and so one round late. Digests of parameters are as peers compare them after the last update
/// (RunOptions::compares_parameters()). Compute thread only, except slot(), bytes() (loop) and feedback().
class TrainState {
 public:
  /// fragments: of the model's vector. optimizer: null for that of the run. The model outlives this object.
  TrainState(Model& model, const RunOptions& run, average::Fragments fragments,
             std::unique_ptr<Optimizer> optimizer = nullptr, StateHooks hooks = {});

  /// The model's initial parameters. Returns their digest.
  Digest initialise();

  /// Has the model compute an item for its slot, whose sum is zero at first in each round.
  WorkDone work(const swarm::WorkItem& item);

  /// Whether a contribution of this round still lacks something: the model has a part of a sum
  /// (Model::collects), or losses are owed. Any thread; false follows upon the last write to them.
  bool has_uncollected(Round round) const;

  /// Has the model add that part to the slot.
  void collect();

  /// The same, with the losses that a contribution of this round lacks.
  void collect(Round round);

  std::span<const float> parameters() const { return parameters_; }

  /// The parameters as rounds average them.
  const average::Fragments& fragments() const { return fragments_; }

  /// One update with the mean gradient of a record as it crosses the wire, a segment each, of the round's
  /// fragment. Returns the digest of the parameters.
  Digest apply(const wire::Record& record, std::span<const Blob> mean);

  /// The mean of this record: applied at once, or kept until move_on() where updates are late. What waited
  /// before is applied first, and so are both in the last round. Returns the digest of the parameters.
  Digest take(const wire::Record& record, std::span<const Blob> mean);

  /// Applies the mean that waits, if any. Returns the digest of the parameters.
  Digest move_on();

  /// move_on() came after the last take(): the state is not that after the last record. Any thread.
  bool has_moved_on() const { return moved_on_; }

  /// A new history begins after this record with the state as it is. Returns the digest of the parameters.
  /// Any thread, while no job changes the state.
  Digest settle(const wire::Record& anew);

  /// take() in a round that this peer missed: nothing is carried over. An error when it is not the record's
  /// mean.
  Result<Digest> apply_missed(const wire::Record& record, std::span<const Blob> mean);

  ErrorFeedback& feedback() { return feedback_; }

  const ErrorFeedback& feedback() const { return feedback_; }

  /// The losses of these contributions of this process, which count in the round that was committed, are
  /// owed. kept: the sums of those computed by others.
  void owe_losses(Round round, std::span<const wire::Contribution> own,
                  const std::map<std::uint32_t, average::GradientSum>& kept = {});

  sync::StateImage freeze(const wire::Record& record, std::uint64_t chunk_bytes);

  /// Changes whenever parameters or optimizer do. Any thread.
  std::uint64_t version() const { return version_; }

  /// The same beside gradients, which leave the state as it is; an update waits until the
  /// copy is made. Nothing if the version has changed, or the program what it wrote out: then copies wait
  /// until it is back. Any thread.
  std::optional<sync::StateImage> freeze(const wire::Record& record, std::uint64_t chunk_bytes,
                                         std::uint64_t version);

  /// Restores a state of other peers; residuals are dropped. Returns the digest of the parameters after its
  /// record, also if the state has moved on. After an error the state is undefined until a
  /// restore succeeds.
  Result<Digest> restore(const sync::StateImage& image);

  /// Drops the gradient sums of any round: the next accumulation begins at zero, whatever its round. The loop
  /// thread may call it, too, while no gradient is accumulated.
  void forget_sums();

  /// Whether the program has to hear of that, since it keeps sums itself.
  bool tells_of_sums() const { return model_.collects() && hooks_.changed; }

  /// After forget_sums(): what the program keeps is of no round any more. Its state is that after this round.
  void begin_anew(Round round);

  /// number: below kLeaseSlots. With overlap, those of a round stay while the next one is computed.
  GradientSlot& slot(Round round, std::uint32_t number) {
    return slots_.at(run_.overlaps() ? round % 2 : 0).at(number);
  }

  /// The program will be busy: has it write its own vectors now.
  void write_out();

  /// The program is back, and may change what it has to write.
  void write_again() { written_ = kNeverWritten; }

  /// Whether a copy may be made beside other work. Any thread.
  bool copies_beside() const { return !hooks_.about_to_copy || written_ == version_; }

  /// Parameters, then the buffers of the optimizer: the vectors of freeze(), which has the late mean, too.
  /// They never move.
  std::vector<std::span<float>> parts();

  /// Bytes of freeze().
  std::uint64_t bytes() const;

 private:
  std::span<float> open(Round round, GradientSlot& slot);
  std::unique_lock<std::shared_mutex> change();
  std::vector<std::span<float>> frozen_parts();
  Status check_mean(const wire::Record& record, std::span<const Blob> mean) const;
  std::vector<Blob> late_mean() const;

  const average::Fragment& fragment(Round round) const { return fragments_.of(round); }

  sync::StateImage copy(const wire::Record& record, std::uint64_t chunk_bytes);

  Model& model_;
  RunOptions run_;
  average::Fragments fragments_;
  std::shared_mutex still_;  // exclusive for changes of parameters_ or optimizer_
  std::atomic<std::uint64_t> version_ = 0;
  static constexpr std::uint64_t kNeverWritten = ~std::uint64_t{0};
  std::atomic<std::uint64_t> written_ = kNeverWritten;  ///< version whose vectors the program has written
  PagedFloats parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  StateHooks hooks_;
  ComparedDigest digest_;  ///< of the parameters as they are now
  // both threads look them up; their number is fixed
  std::array<std::array<GradientSlot, wire::kLeaseSlots>, 2> slots_;
  GradientSlot* uncollected_ = nullptr;       ///< the model has a part of its sum
  std::atomic<Round> uncollected_round_ = 0;  ///< of that part; 0: there is none
  ErrorFeedback feedback_;
  LateMean late_;
  std::atomic<bool> moved_on_ = false;
};

}  // namespace tw::train
