// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "average/fragments.h"
#include "data/sample.h"
#include "swarm/leases/work.h"
#include "train/run/run.h"

namespace tw::train {

/// Samples [first, first + count) of the run, counted over all rounds and epochs.
struct SampleSpan {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The part of a WorkItem that was computed: its first microbatches.
struct WorkDone {
  std::uint64_t microbatches = 0;
  std::uint64_t samples = 0;
  double loss_sum = 0;                         ///< over these samples
  std::vector<data::MissingSample> skipped{};  ///< left out: nobody can read them
  std::string settings{};  ///< that a program wants for the update of this round (wire::Record::settings)
  std::optional<data::MissingSample> missing{};  ///< this peer cannot read it, so nothing was computed
  double data_s = 0;  ///< part of the time in which its program waited for data, as far as it said so
};

/// A model with its data, on flat vectors: the program's, the simulator's, or that of a benchmark. All calls
/// come from one thread at a time, the compute thread.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Sizes of the tensors that make up the flat vector, in order.
  virtual std::vector<std::uint64_t> tensor_sizes() const = 0;

  /// The parameters with which the run begins.
  virtual void initial_parameters(std::span<float> out) = 0;

  /// Adds the gradient of the SUM of the losses of the item's samples, or of its first microbatches, of the
  /// fragment of the item's round.
  virtual WorkDone work(std::span<const float> parameters, const swarm::WorkItem& item,
                        std::span<float> gradient_sum) = 0;

  /// Whether work() adds nothing itself: collect() does.
  virtual bool collects() const { return false; }

  /// Adds to the sum of a slot, of the round's fragment, what work() computed since the last collect(); that
  /// begins at zero then. All of it was for this slot of this round.
  virtual void collect(Round, std::span<float>) {}
};

/// Floats of the flat vector.
std::uint64_t parameter_count(const Model& model);

/// The flat vector as rounds average it. segment_length: floats; 0: as is usual.
average::Fragments fragments_of(const RunOptions& run, const Model& model, std::uint64_t segment_length = 0);

}  // namespace tw::train
