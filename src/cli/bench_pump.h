// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tw::bench {

struct Pumped {
  double bytes_per_s = 0;  ///< of all streams together
  double cpu_s_per_gb = 0;
};

/// What plain sockets carry on the loopback, with nothing to do but send and receive: a stream from each of
/// so many peers to each other one, all at the same time, as `iperf3 --bidir` has with two.
Result<Pumped> pump_loopback(int peers, Duration time);

}  // namespace tw::bench
