// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/learn/optimizer.h"
#include "train/run/run.h"
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
/// With BufferUse::leader only the passes of the leader are added. The tail then begins with one float more:
/// the samples of these passes. In the mean of a round it is their share of all samples, and the update
/// divides the other values by it (OptimizerKind::share_average). So the lead may change in a round, and
/// contributions may be left out. Where no pass of a leader counts, the buffers stay.
///
/// A first pass finds these buffers: those that it changes, and all others of the same modules. Compute
/// thread.
class TorchBuffers {
 public:
  /// The model outlives this object. Its buffers have their initial values; no pass ran yet.
  TorchBuffers(TorchModel& model, BufferUse use);
  ~TorchBuffers();

  TorchBuffers(const TorchBuffers&) = delete;
  TorchBuffers& operator=(const TorchBuffers&) = delete;

  /// After a first pass in training mode: finds the changed buffers, and resets all buffers. The error names
  /// one of a type that has no mean (bool, complex).
  Status find_changed();

  /// Floats of the tail; 0 before find_changed().
  std::uint64_t size() const { return size_; }

  /// The floats of each tensor in the tail; with BufferUse::leader, 1 for the samples comes first.
  std::vector<std::uint64_t> tensor_sizes() const;

  /// "buffer: bn.running_mean (16) float32", a line each, and "led: samples () float32" before them where
  /// only the leader's passes count: RunOptions::layout.
  std::string layout() const;

  /// tail: size() floats.
  void initial(std::span<float> tail) const;

  /// The model's buffers get these values; size() floats.
  void load(std::span<const float> tail);

  /// sum += samples x (the model's buffers now - tail), after load(tail) and a pass of so many samples.
  void add_changes(std::span<const float> tail, std::uint64_t samples, std::span<float> sum) const;

  /// How the update treats the tail; nothing where it is empty.
  std::optional<ParameterGroup> group() const;

  /// Whether this peer leads. With BufferUse::leader, add_changes() has no effect on other peers.
  void lead(bool leads) { leads_ = leads; }

  /// The name of a buffer outside the tail that has changed since the beginning; empty: none.
  std::string drifted() const;

 private:
  struct Tracked;
  struct Constant;

  TorchModel& model_;
  BufferUse use_;
  bool leads_ = false;
  std::vector<Constant> constants_;  // before find_changed: all
  std::vector<Tracked> tracked_;
  std::uint64_t size_ = 0;
};

}  // namespace tw::train
