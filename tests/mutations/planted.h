// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Included into every file of the planted copy of the sources (tools/plant_bugs).
namespace tw {

/// The bug of mutations.txt that this process runs with; 0: none.
inline std::uint32_t planted_bug = 0;

inline bool planted(std::uint32_t number) { return planted_bug == number; }

}  // namespace tw
