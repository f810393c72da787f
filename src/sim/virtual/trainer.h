// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/digest.h"
#include "train/learn/model.h"

namespace tw::sim {

struct SyntheticModel {
  std::uint64_t parameters = 100;
  std::uint64_t seed = 1;
  bool local = false;  ///< RunOptions::is_local()
  bool blind = false;  ///< gradients do not depend on parameters, since records do not name these
  std::function<bool(std::uint64_t sample)> lacks{};   ///< it cannot be had here; none: all can
  std::function<bool(std::uint64_t sample)> broken{};  ///< everywhere; it is skipped; none: no sample is
  std::function<bool(std::uint64_t sample)> gone{};    ///< the same, once three peers have been asked for it
};

/// Value j of the gradient of one sample: an integer in [-128, 127], so that sums over up to 2^16 samples are
/// exact in float, in any order.
int synthetic_gradient(const Digest& parameters, std::uint64_t sample, std::uint64_t j);

/// A model whose gradients depend on parameters and sample like random numbers: a peer that computes with
/// stale parameters, or leaves out or repeats a sample, changes every value of its sum. A local one keeps
/// what it computes until it is collected; it depends on the samples alone, whatever its copy went through.
class SyntheticTrainer final : public train::Model {
 public:
  /// Stands for the parameters of a local model.
  static constexpr Digest kOwnCopy{};

  explicit SyntheticTrainer(const SyntheticModel& model) : model_(model) {}

  std::vector<std::uint64_t> tensor_sizes() const override;
  void initial_parameters(std::span<float> out) override;
  train::WorkDone work(std::span<const float> parameters, const swarm::WorkItem& item,
                       std::span<float> gradient_sum) override;

  bool collects() const override { return model_.local; }

  void collect(Round round, std::span<float> sum) override;

  /// Whether a fault strikes that leaves these parameters behind.
  using Strikes = std::function<bool(const Digest& parameters)>;

  /// One bit of the parameters changes after the next range of samples, as by a fault of the memory, if
  /// `strikes` says so then.
  void flip_later(std::uint64_t choice, Strikes strikes) {
    choice_ = choice;
    strikes_ = std::move(strikes);
  }

  /// Number of samples whose gradients were computed here.
  std::uint64_t computed() const { return computed_; }

 private:
  void add(const Range& samples, const Digest& parameters, std::span<float> gradient_sum,
           train::WorkDone& done) const;
  void flip(std::span<const float> parameters);
  std::optional<data::MissingSample> missing_of(const RangeSet& samples, bool skips) const;
  std::optional<data::MissingSample> left_out_of(std::uint64_t sample) const;

  SyntheticModel model_;
  std::vector<float> own_;  ///< of a local one: what is not collected
  std::uint64_t computed_ = 0;
  std::uint64_t choice_ = 0;  ///< of the bit that flips
  Strikes strikes_;           ///< a bit is to flip
};

/// The right contribution for these samples, computed value by value from synthetic_gradient.
std::vector<float> reference_contribution(const Digest& parameters,
                                          std::span<const train::SampleSpan> samples, std::uint64_t length);

}  // namespace tw::sim
