// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/checkers/checker.h"
#include "sim/virtual/world.h"

namespace tw::sim {

/// A machine with a notice is away from its run so long before its end.
inline constexpr Duration kKeptInHand = std::chrono::seconds(2);

/// What peers of this site say of where they are.
std::string site_name(const WorldOptions& options, int site);

/// What the checkers judge by, from what may be drawn for this world.
Rules rules_of(const WorldOptions& options);

/// The model's vector as rounds average it.
average::Fragments fragments_of(const WorldOptions& options);

/// The most that a session may hold for so many peers.
std::uint64_t most_held_bytes(const WorldOptions& options, std::size_t peers);

}  // namespace tw::sim
