// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/range_set.h"

namespace tw {

/// What to_string(RangeSet) wrote, such as "0-31,40"; nullopt for anything else.
std::optional<RangeSet> ranges_in(std::string_view text);

}  // namespace tw
