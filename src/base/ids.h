// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace tw {

/// One participant of a run. A process that restarts under its id has another incarnation (wire/record.h).
struct PeerId {
  std::uint64_t value = 0;

  auto operator<=>(const PeerId&) const = default;
};

inline std::string to_string(PeerId peer) { return std::to_string(peer.value); }

/// Rounds count from 1; 0 is the genesis record, before any update.
using Round = std::uint64_t;

/// One averaging: in one round of one history.
struct StepId {
  Round round = 0;
  std::uint64_t after = 0;  ///< half of the digest of the record before: other histories have rounds, too

  auto operator<=>(const StepId&) const = default;
};

/// Number of an attempt to lead one round. Ballot b of a round belongs to member b mod n of the previous
/// record.
using Ballot = std::uint32_t;

}  // namespace tw

template <>
struct std::hash<tw::PeerId> {
  std::size_t operator()(tw::PeerId peer) const noexcept { return std::hash<std::uint64_t>{}(peer.value); }
};
