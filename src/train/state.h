// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "average/reduction.h"
#include "base/digest.h"
#include "base/result.h"
#include "sync/image.h"
#include "train/run.h"
#include "train/trainer.h"

namespace tw {

/// The gradient sum of one slot. Written on the compute thread; read on the loop thread from the time it is
/// complete until its round is decided, when nothing writes to it.
struct GradientSlot {
  Round round = 0;  ///< whose gradients are in it
  std::vector<float> sum;
};

/// Everything a peer trains with: parameters, optimizer, gradient slots. Compute thread only, but for slot()
/// and bytes(), which are the loop thread's.
class TrainState {
 public:
  TrainState(Trainer& trainer, const RunOptions& run);

  /// Parameters from the seed. Returns their digest.
  Digest initialise();

  /// Adds the gradient sum of one microbatch to a slot of this round; returns the sum of the losses.
  double accumulate(Round round, GradientSlot& slot, std::uint64_t microbatch);

  /// One update with a mean gradient. Returns the digest of the parameters.
  Digest apply(Round round, std::span<const float> mean);

  /// The same with the mean as it came over the wire, a segment each. An error when it is not the record's
  /// mean.
  Result<Digest> apply_encoded(const Record& record, const Geometry& geometry,
                               std::span<const Blob> segments);

  StateImage freeze(const Record& record, std::uint64_t chunk_bytes);

  /// Takes the state of others. After an error the state is undefined until a restore succeeds.
  Result<Digest> restore(const StateImage& image);

  Evaluation evaluate();

  /// Made on first use; stays where it is.
  GradientSlot& slot(std::uint32_t number) { return slots_[number]; }

  /// Of freeze(): parameters and optimizer buffers.
  std::uint64_t bytes() const;

 private:
  std::vector<std::span<float>> parts();

  Trainer& trainer_;
  RunOptions run_;
  std::vector<float> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::map<std::uint32_t, GradientSlot> slots_;
};

}  // namespace tw
