// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/trainer.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "base/prng.h"

namespace tw::sim {
namespace {

constexpr std::uint64_t kValuesOfWord = 8;

std::uint64_t seed_of(const Digest& parameters, std::uint64_t sample) {
  return mix(parameters.high ^ parameters.low, sample);
}

int value_in(std::uint64_t word, std::uint64_t place) {
  return static_cast<std::int8_t>((word >> (8 * place)) & 0xff);
}

}  // namespace

int synthetic_gradient(const Digest& parameters, std::uint64_t sample, std::uint64_t j) {
  const std::uint64_t word = mix(seed_of(parameters, sample), j / kValuesOfWord);
  return value_in(word, j % kValuesOfWord);
}

std::vector<std::uint64_t> SyntheticTrainer::tensor_sizes() const {
  const std::uint64_t first = model_.parameters / 3;
  if (first == 0) return {model_.parameters};
  return {first, model_.parameters - first};
}

void SyntheticTrainer::initial_parameters(std::span<float> out) {
  Prng random(model_.seed);
  for (float& value : out) value = static_cast<float>(random.uniform()) - 0.5F;
}

train::WorkDone SyntheticTrainer::work(std::span<const float> parameters, const swarm::WorkItem& item,
                                       std::span<float> gradient_sum) {
  if (auto missing = missing_of(item.samples, item.skips)) return {.missing = std::move(missing)};
  const std::uint64_t samples = item.samples.count();
  train::WorkDone done{item.microbatches.count(), samples, static_cast<double>(samples)};
  computed_ += samples;
  if (model_.local) own_.resize(gradient_sum.size());
  const std::span<float> sum = model_.local ? std::span(own_) : gradient_sum;
  for (const Range& range : item.samples.ranges()) {
    add(range, model_.local || model_.blind ? kOwnCopy : digest_of_parameters(parameters), sum, done);
    if (strikes_) flip(parameters);
  }
  return done;
}

void SyntheticTrainer::collect(Round, std::span<float> sum) {
  for (std::size_t j = 0; j < own_.size(); ++j) sum[j] += std::exchange(own_[j], 0.0F);
}

void SyntheticTrainer::add(const Range& samples, const Digest& parameters, std::span<float> gradient_sum,
                           train::WorkDone& done) const {
  for (std::uint64_t sample = samples.first; sample < samples.end(); ++sample) {
    if (std::optional<data::MissingSample> left_out = left_out_of(sample)) {
      done.skipped.push_back(*std::move(left_out));
      continue;
    }
    const std::uint64_t seed = seed_of(parameters, sample);
    for (std::uint64_t j = 0; j < gradient_sum.size(); j += kValuesOfWord) {
      const std::uint64_t word = mix(seed, j / kValuesOfWord);
      for (std::uint64_t place = 0; place < kValuesOfWord && j + place < gradient_sum.size(); ++place) {
        gradient_sum[j + place] += static_cast<float>(value_in(word, place));
      }
    }
  }
}

// A model may not write to the parameters; a fault of the memory does. The buffer itself is no constant.
void SyntheticTrainer::flip(std::span<const float> parameters) {
  constexpr std::uint64_t kMantissaBits = 23;
  float& value = const_cast<float&>(parameters[choice_ % parameters.size()]);
  const float before = value;
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (1U << mix(choice_, 1) % kMantissaBits));
  if (!std::exchange(strikes_, {})(digest_of_parameters(parameters))) value = before;
}

std::optional<data::MissingSample> SyntheticTrainer::left_out_of(std::uint64_t sample) const {
  if (model_.broken && model_.broken(sample))
    return data::MissingSample{sample, fmt::format("a.tar: {}: not a JPEG", sample)};
  if (model_.gone && model_.gone(sample))
    return data::MissingSample{sample, fmt::format("b.tar: {}: 404 Not Found", sample), true};
  return std::nullopt;
}

// What this peer cannot have comes first: then it may not skip, whatever is gone.
std::optional<data::MissingSample> SyntheticTrainer::missing_of(const RangeSet& samples, bool skips) const {
  std::optional<data::MissingSample> gone;
  for (const Range& range : samples.ranges()) {
    for (std::uint64_t s = range.first; s < range.end(); ++s) {
      if (model_.lacks && model_.lacks(s))
        return data::MissingSample{s, fmt::format("a.tar: {}: 404 Not Found", s)};
      if (!skips && !gone && model_.gone && model_.gone(s)) gone = left_out_of(s);
    }
  }
  return gone;
}

std::vector<float> reference_contribution(const Digest& parameters,
                                          std::span<const train::SampleSpan> samples, std::uint64_t length) {
  std::vector<float> sums;
  for (std::uint64_t j = 0; j < length; ++j) {
    std::int64_t sum = 0;
    for (const train::SampleSpan span : samples) {
      for (std::uint64_t i = 0; i < span.count; ++i) sum += synthetic_gradient(parameters, span.first + i, j);
    }
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

}  // namespace tw::sim
