// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "swarm/lease_book.h"
#include "wire/messages.h"

/// What a message of another peer may say at all. A peer that follows the protocol never says anything
/// else, in whatever order its messages arrive.
namespace tw {

/// Slots of one round; each costs a vector (average/ takes no more either).
inline constexpr std::uint32_t kMostSlots = 64;

/// Sites of a plan; each costs a table of owners.
inline constexpr std::size_t kMostSites = 256;

/// No line carries more, and nobody names more pairs that carry less than their lines.
inline constexpr double kMostBytesPerS = 1e12;
inline constexpr std::size_t kMostSlowPairs = 64;

/// Why no correct leader can make a record out of this draft after `head`; empty when one can.
std::string fault_of(const Record& draft, const Record& head, const LeaseBook::Options& lease);

/// Not longer, and of no higher ballot, than anything true could be.
bool is_sound(const Progress& progress, const LeaseBook::Options& lease);

}  // namespace tw
