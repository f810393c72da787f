// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/torch_model.h"

namespace tw::train {

/// The buffers that training changes, such as the statistics of BatchNorm: the tail of the flat vector.
///
/// The vector holds the round's values. A forward pass moves the model's buffers away from them; that change,
/// times the samples of the pass, is added to the gradient sum, and the next pass begins with the round's
/// values again. So the mean of a round is the sample-weighted mean of the changes, on whichever peers the
/// passes ran. Integers (num_batches_tracked) are treated like floats, and rounded to the nearest for the
/// model.
///
/// A first pass finds these buffers: those that it changes, and all others of the same modules. Compute
/// thread.
class TorchBuffers {
 public:
  /// The model outlives this object. Its buffers have their initial values; no pass ran yet.
  explicit TorchBuffers(TorchModel& model);
  ~TorchBuffers();

  TorchBuffers(const TorchBuffers&) = delete;
  TorchBuffers& operator=(const TorchBuffers&) = delete;

  /// After a first pass in training mode: finds the changed buffers, and resets all buffers. The error names
  /// one of a type that has no mean (bool, complex).
  Status find_changed();

  /// Floats of the tail; 0 before find_changed().
  std::uint64_t size() const { return size_; }

  /// The floats of each tensor in the tail.
  std::vector<std::uint64_t> tensor_sizes() const;

  /// "buffer: bn.running_mean (16) float32", a line each: RunOptions::layout.
  std::string layout() const;

  /// tail: size() floats.
  void initial(std::span<float> tail) const;

  /// The model's buffers get these values; size() floats.
  void load(std::span<const float> tail);

  /// sum += weight x (the model's buffers now - tail), after load(tail) and passes.
  void add_changes(std::span<const float> tail, double weight, std::span<float> sum) const;

  /// The name of a buffer outside the tail that has changed since the beginning; empty: none.
  std::string drifted() const;

 private:
  struct Tracked;
  struct Constant;

  TorchModel& model_;
  std::vector<Constant> constants_;  // before find_changed: all
  std::vector<Tracked> tracked_;
  std::uint64_t size_ = 0;
};

}  // namespace tw::train
