// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::train {

/// What decides how much a session may hold for others.
struct HeldSizes {
  std::uint64_t vector_bytes = 0;  ///< encoded as it crosses the wire, the mean (it is the longer one)
  std::uint64_t segments = 0;      ///< of the vector
  std::uint64_t state_bytes = 0;   ///< parameters and optimizer
  std::uint64_t state_chunks = 0;
  std::uint64_t microbatches = 0;  ///< of a round
  std::uint64_t peers = 0;         ///< all that the session was ever linked to or told of
};

/// The most that SessionView::held_bytes may be, whatever those peers send: the sum of what the caps of
/// Averager, Donor, Fetch and Swarm allow.
std::uint64_t held_bytes_limit(const HeldSizes& sizes);

}  // namespace tw::train
