// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::sim {

/// Sizes that decide how much memory a session may hold for other peers.
struct HeldSizes {
  std::uint64_t vector_bytes = 0;  ///< encoded mean, which is longer than a contribution
  std::uint64_t segments = 0;      ///< of the vector
  std::uint64_t state_bytes = 0;   ///< parameters and optimizer
  std::uint64_t state_chunks = 0;
  std::uint64_t microbatches = 0;  ///< of a round
  std::uint64_t peers = 0;         ///< all peers that the session ever linked to or learned of
};

/// The most that SessionView::held_bytes may be, whatever those peers send: the sum of what the caps of
/// Averager, Donor, Fetch and Swarm allow.
std::uint64_t held_bytes_limit(const HeldSizes& sizes);

}  // namespace tw::sim
