// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tw::measure {

struct Pumped {
  double bytes_per_s = 0;  ///< of all streams together
  double cpu_s_per_gb = 0;
};

/// Seconds for so many bytes from the memory of one thread into that of another over one plain connection of
/// the loopback, hashed once as they arrive, a chunk of 512 KiB after the other.
Result<double> carry_loopback(std::uint64_t bytes);

/// What plain sockets carry on the loopback, with nothing to do but send and receive: a stream from each of
/// so many peers to each other one, all at the same time, as `iperf3 --bidir` has with two.
Result<Pumped> pump_loopback(int peers, Duration time);

}  // namespace tw::measure
