// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

namespace tw {

/// Fewer values are done sooner than a thread starts.
inline constexpr std::size_t kWorthAThread = 1 << 18;

/// How many threads a loop over so many values is worth, `most` at most, at least 1.
constexpr std::size_t threads_for(std::size_t values, std::size_t most) {
  return std::clamp<std::size_t>(values / kWorthAThread, 1, std::max<std::size_t>(1, most));
}

/// Calls part(i) for each i below `parts` on so many threads, the caller's among them, in any order. Returns
/// when all have returned; the first exception of a part is thrown here, and further parts are left out.
void in_parallel(std::size_t threads, std::size_t parts, const std::function<void(std::size_t part)>& part);

}  // namespace tw
