// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/prng.h"
#include "base/time.h"
#include "wan/topology.h"

/// Effects on a packet on its path, one class each. None of these holds packets: they get arrival times, in
/// order, and return when the packet goes on.
namespace tw::wan {

/// A FIFO in front of a wire of a given rate, with room for `queue` of waiting.
class Gate {
 public:
  Gate(double bit_s, Duration queue) : bit_s_(bit_s), queue_(queue) {}

  /// When the last bit of the packet is out; nothing when it is dropped, as there is no room.
  std::optional<Instant> admit(Instant now, double bytes);

  /// Until `now` at the old rate, from then on at the new one. Returns how much longer (or shorter) what is
  /// queued takes: a packet that was to leave at t > now now leaves at now + (t - now) * factor.
  double change(double bit_s, Instant now);

  double bit_s() const { return bit_s_; }

  double queued_bytes(Instant now) const;

 private:
  double bit_s_;
  Duration queue_;
  Instant free_at_{};
};

/// Propagation: delay with jitter. What entered first leaves first.
class Wire {
 public:
  Instant carry(Instant now, const Link& link, Prng& prng);

 private:
  Instant last_{};
};

}  // namespace tw::wan
