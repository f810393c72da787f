// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/ids.h"

namespace tw::wire {

/// Measured rate from one peer to another.
struct PairRate {
  PeerId to;
  double bytes_per_s = 0;

  static void fields(auto& self, auto&& field) { field(self.to, self.bytes_per_s); }

  bool operator==(const PairRate&) const = default;
};

/// Bandwidth of a peer, as far as transfers have shown it. 0: not known.
struct Bandwidth {
  double up_bytes_per_s = 0;
  double down_bytes_per_s = 0;
  std::vector<PairRate> slow;  ///< links slower than the bandwidth of both ends allows

  bool known() const { return up_bytes_per_s > 0 && down_bytes_per_s > 0; }

  static void fields(auto& self, auto&& field) {
    field(self.up_bytes_per_s, self.down_bytes_per_s, self.slow);
  }

  bool operator==(const Bandwidth&) const = default;
};

}  // namespace tw::wire
