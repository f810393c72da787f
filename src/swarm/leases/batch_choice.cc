// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/batch_choice.h"

#include <algorithm>
#include <cmath>

#include "base/averaging_wait.h"
#include "base/check.h"

namespace tw::swarm {
namespace {

std::uint64_t rounded_up(double samples, std::uint64_t microbatch) {
  return (static_cast<std::uint64_t>(std::ceil(samples)) + microbatch - 1) / microbatch * microbatch;
}

}  // namespace

BatchBounds in_microbatches(BatchBounds bounds, std::uint64_t microbatch) {
  TW_CHECK(microbatch > 0);
  const std::uint64_t least = std::max<std::uint64_t>(1, (bounds.least + microbatch - 1) / microbatch);
  return {least * microbatch, std::max(least, bounds.most / microbatch) * microbatch};
}

std::uint64_t next_batch_size(const wire::BatchChoice& measured, const TargetBatch& batch) {
  TW_CHECK(batch.chosen && batch.chosen->least > 0 && batch.chosen->least <= batch.chosen->most);
  const auto within = [&](std::uint64_t samples) {
    return std::clamp(samples, batch.chosen->least, batch.chosen->most);
  };
  const std::uint64_t present = within(measured.samples);
  if (measured.averaging_s <= 0 || measured.samples_per_s <= 0) return present;
  const double hides = measured.averaging_s * measured.samples_per_s * work_for_averaging(batch.overlap);
  const auto most = static_cast<double>(batch.chosen->most);
  const double wanted = std::min(most, std::max(hides, static_cast<double>(measured.at_once)));
  const std::uint64_t chosen = within(rounded_up(wanted, batch.microbatch));
  const auto now = static_cast<double>(present);
  if (std::abs(static_cast<double>(chosen) - now) <= kDamping * now) return present;
  return within(rounded_up(std::clamp(static_cast<double>(chosen), now / 2, now * 2), batch.microbatch));
}

}  // namespace tw::swarm
