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

/// Seconds to send `bytes` from the memory of one thread to that of another over one plain loopback
/// connection, in chunks of 512 KiB that are hashed as they arrive.
Result<double> carry_loopback(std::uint64_t bytes);

/// Rate of plain sockets on the loopback that only send and receive: a stream from each peer to each other
/// one, all at the same time, like `iperf3 --bidir` with two.
Result<Pumped> pump_loopback(int peers, Duration time);

}  // namespace tw::measure
