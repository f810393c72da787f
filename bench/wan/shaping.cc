// SPDX-License-Identifier: Apache-2.0
#include "wan/shaping.h"

#include <algorithm>
#include <cmath>

namespace tw::wan {
namespace {

/// Room for a burst of 64 KiB from each of a few hosts, however slow the link.
constexpr double kSmallestQueueBytes = 4 * 65536;

Duration time_of(double bytes, double bit_s) { return Duration(std::llround(bytes * 8e9 / bit_s)); }

}  // namespace

std::optional<Instant> Gate::admit(Instant now, double bytes) {
  if (bit_s_ == kUnlimited) return now;
  const double room = std::max(kSmallestQueueBytes, to_seconds(queue_) * bit_s_ / 8);
  if (queued_bytes(now) + bytes > room) return std::nullopt;
  free_at_ = std::max(free_at_, now) + time_of(bytes, bit_s_);
  return free_at_;
}

double Gate::change(double bit_s, Instant now) {
  const double factor = bit_s_ == kUnlimited || bit_s == kUnlimited ? 0 : bit_s_ / bit_s;
  if (free_at_ > now) free_at_ = now + from_seconds(to_seconds(free_at_ - now) * factor);
  bit_s_ = bit_s;
  return factor;
}

double Gate::queued_bytes(Instant now) const {
  if (bit_s_ == kUnlimited || free_at_ <= now) return 0;
  return to_seconds(free_at_ - now) * bit_s_ / 8;
}

Instant Wire::carry(Instant now, const Link& link, Prng& prng) {
  Duration delay = link.delay;
  if (link.jitter > Duration{}) {
    const double either_way = 2 * prng.uniform() - 1;
    delay += Duration(std::llround(either_way * static_cast<double>(link.jitter.count())));
  }
  last_ = std::max(last_, now + std::max(delay, Duration{}));
  return last_;
}

}  // namespace tw::wan
