// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "base/check.h"
#include "wire/limits.h"

namespace tw::measure {
namespace {

/// Enough that each peer gets some, few enough that they cost nothing.
constexpr std::uint64_t kMicrobatchesOfAPeer = 4;
/// Odd, so that no two pieces of the vector of a power of two are alike.
constexpr std::uint64_t kPeriod = 251;
constexpr std::uint64_t kChecked = 1009;

/// Never 0, within (-1, 1), exact in any floating-point codec.
float value_at(PeerId peer, std::uint64_t i) {
  const std::uint64_t step = (7 * i + 13 * peer.value) % kPeriod;
  return (2 * static_cast<float>(step) - static_cast<float>(kPeriod)) / 256;
}

/// Error of one rounding, relative to the largest value nearby.
double rounding_of(codec::Codec codec) {
  switch (codec) {
    case codec::Codec::fp32:
      return 1e-6;
    case codec::Codec::fp16:
      return 1.0 / 2048;
    case codec::Codec::bf16:
      return 1.0 / 256;
    case codec::Codec::int8:
      return 1.0 / 250;
    case codec::Codec::int4:
      return 1.0 / 13;
  }
  TW_CHECK(false);
}

}  // namespace

train::RunOptions run_of(std::uint64_t peers, codec::Codec codec, Round rounds) {
  train::RunOptions run;
  run.model = run.data = "bench";
  run.batch.size = kMicrobatchesOfAPeer * peers;
  run.microbatch = 1;
  run.optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0, .weight_decay = 0};
  run.learning_rate = 1;
  run.codec = codec;
  run.rounds = rounds;
  return run;
}

GradientTrainer::GradientTrainer(Options options) : options_(std::move(options)), vector_(kPeriod) {
  for (std::uint64_t i = 0; i < kPeriod; ++i) vector_[i] = value_at(options_.self, i);
}

void GradientTrainer::initial_parameters(std::span<float> out) { std::fill(out.begin(), out.end(), 0.0F); }

train::WorkDone GradientTrainer::work(std::span<const float> parameters, const swarm::WorkItem& item,
                                      std::span<float> gradient_sum) {
  const Round round = applied_ + 1;
  check(round, parameters);
  const bool fresh = gradient_sum.front() == 0;
  for (std::size_t first = 0; fresh && first < gradient_sum.size(); first += kPeriod) {
    const std::size_t length = std::min<std::size_t>(kPeriod, gradient_sum.size() - first);
    for (std::size_t i = 0; i < length; ++i) gradient_sum[first + i] += vector_[i];
  }
  if (options_.work > Duration::zero()) std::this_thread::sleep_for(options_.work);
  if (options_.board != nullptr)
    options_.board->await(static_cast<int>(options_.self.value - 1), static_cast<std::uint32_t>(round));
  return {item.microbatches.count(), item.samples.count()};
}

void GradientTrainer::on_commit(const wire::Record& record) {
  const std::lock_guard lock(mutex_);
  records_.insert_or_assign(record.round, record);
}

GradientTrainer::Sample GradientTrainer::sample(Round round, std::span<const float> parameters) const {
  Sample sample{round, {}};
  for (std::uint64_t i = 0; i < kChecked; ++i)
    sample.values.push_back(parameters[i * (parameters.size() - 1) / (kChecked - 1)]);
  return sample;
}

void GradientTrainer::check(Round round, std::span<const float> parameters) {
  if (before_.round == round) return;
  const Sample before = std::exchange(before_, sample(round, parameters));
  const bool known = options_.run.optimizer.kind == train::OptimizerKind::sgd;
  const bool follows = known && before.round + 1 == round && !before.values.empty();
  if (!follows) return;  // it is the first one here, or this peer took the state of others meanwhile
  wire::Record record;
  {
    const std::lock_guard lock(mutex_);
    records_.erase(records_.begin(), records_.lower_bound(before.round));  // rounds without work here
    const auto found = records_.find(before.round);
    if (found == records_.end()) return;
    record = std::move(found->second);
    records_.erase(found);
  }
  // A sum that was handed over is of a peer that the record does not name.
  const auto kept = [](const wire::Contribution& c) { return c.slot >= wire::kLeaseSlots; };
  if (std::ranges::any_of(record.contributors, kept)) return;
  const double unit = 1.0 / static_cast<double>(record.samples);
  const double tolerance =
      4 * rounding_of(options_.run.codec) * unit * static_cast<double>(record.contributors.size());
  for (std::uint64_t k = 0; k < kChecked; ++k) {
    const std::uint64_t i = k * (parameters.size() - 1) / (kChecked - 1);
    double mean = 0;
    for (const wire::Contribution& c : record.contributors)
      mean += unit * static_cast<double>(value_at(c.peer, i % kPeriod));
    const double lost = static_cast<double>(before.values[k]) - static_cast<double>(before_.values[k]);
    // The parameters have grown by a value below 1 in each round, and round off in single precision.
    const double drift = static_cast<double>(round) * std::numeric_limits<float>::epsilon();
    if (std::abs(lost - mean) > tolerance + drift)
      throw std::runtime_error(
          fmt::format("the mean of round {} is {} at {}, expected {}", before.round, lost, i, mean));
  }
}

}  // namespace tw::measure
