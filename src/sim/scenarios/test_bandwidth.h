// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw {

inline constexpr double kMbit = 125e3;  ///< bytes/s, for tests that say a bandwidth

}  // namespace tw
