// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tw {

/// Terminal columns of a printable text (base/text/printable.h): none for a combining mark, two for a wide
/// East Asian character or an emoji, one for each other character.
std::size_t columns_of(std::string_view text);

/// The text if it fits into this many columns, else its beginning and "…". Never wider.
std::string cut_to(std::string_view text, std::size_t columns);

/// cut_to, then padded with spaces to exactly this width; on the left if `right`.
std::string fitted(std::string_view text, std::size_t columns, bool right = false);

}  // namespace tw
