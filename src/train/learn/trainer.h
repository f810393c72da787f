// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/range_set.h"
#include "data/dataset.h"
#include "data/sample_order.h"
#include "train/learn/optimizer.h"
#include "train/session/work_meter.h"

namespace tw::train {

/// Samples [first, first + count) of the run, counted over all rounds and epochs.
struct SampleSpan {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct Evaluation {
  double loss = 0;                 ///< mean over the evaluation samples
  std::optional<double> accuracy;  ///< share of right answers in [0, 1], if the model computes it
};

/// A model with its data, as flat float buffers. All calls come from one thread at a time, the compute
/// thread.
class Trainer {
 public:
  virtual ~Trainer() = default;

  virtual std::uint64_t parameter_count() const = 0;

  /// Sizes of the tensors that make up the flat vector, in order; their sum is parameter_count().
  virtual std::vector<std::uint64_t> tensor_sizes() const = 0;

  /// The same tensors with names and shapes: RunOptions::layout. Empty: not known.
  virtual std::string layout() const { return {}; }

  /// Identifies the files that decide the result, a line each: RunOptions::sources.
  virtual std::string sources() const { return {}; }

  /// Which samples of its data are those of the run. Nothing: not known.
  virtual std::optional<data::SampleOrder> order() const { return std::nullopt; }

  /// Which parameters are updated by which options, in their order; `options` are those of the run.
  virtual std::vector<ParameterGroup> groups(const OptimizerOptions& options) const {
    return {one_group(options, tensor_sizes())};
  }

  /// The parameters with which the run begins: the same on every peer (from the seed).
  virtual void initial_parameters(std::span<float> out) = 0;

  /// From now on this peer leads the run, or not: RunOptions::buffers.
  virtual void lead(bool /*leads*/) {}

  /// Adds the gradient of the SUM of the losses of these samples to gradient_sum; returns that sum. The
  /// result depends on nothing but parameters and span (dropout is seeded by the span), and for the leader's
  /// buffers on lead().
  virtual double accumulate(std::span<const float> parameters, SampleSpan samples,
                            std::span<float> gradient_sum) = 0;

  /// Waits until these samples can be accumulated at once. Returns the first one that cannot be read, if any.
  /// skips: data::Dataset::load.
  virtual std::optional<data::MissingSample> load(const RangeSet& /*samples*/, bool /*skips*/) {
    return std::nullopt;
  }

  /// These samples will be accumulated soon, and no others: time to fetch them. Any thread, beside other
  /// calls; does not wait.
  virtual void expect(const RangeSet& /*samples*/) {}

  /// News of fetched samples since the last call.
  virtual data::LoadNews take_load_news() { return {}; }

  /// Samples that the compute thread waits for. Any thread, beside other calls.
  virtual std::optional<data::LoadWait> waiting_for_data() const { return std::nullopt; }

  /// meter: counts the batches.
  virtual Evaluation evaluate(std::span<const float> parameters, WorkMeter& meter) = 0;

  Evaluation evaluate(std::span<const float> parameters) {
    WorkMeter nobody_looks;
    return evaluate(parameters, nobody_looks);
  }
};

}  // namespace tw::train
