// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace tw {

/// Called where a correct program may take a rare branch at will (an early timeout, a smaller portion, a
/// second try): true makes it take that branch. Empty outside simulation. Sites are named "file.what".
using Rarely = std::function<bool(std::string_view site)>;

inline bool rarely(const Rarely& chance, std::string_view site) { return chance && chance(site); }

}  // namespace tw
