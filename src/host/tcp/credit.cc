// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/credit.h"

namespace tw::host {

std::optional<std::uint64_t> Allowance::on_consumed(Instant now, std::uint64_t bytes) {
  if (now - begun_ >= period_) {
    begun_ = now;
    in_period_ = 0;
  }
  in_period_ += bytes;
  consumed_ += bytes;
  window_ = std::clamp(4 * in_period_, window_, kMostWindow);
  const std::uint64_t limit = consumed_ + window_;
  if (limit < granted_ + window_ / 4) return std::nullopt;
  granted_ = limit;
  return limit;
}

}  // namespace tw::host
