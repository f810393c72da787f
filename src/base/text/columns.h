// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tw {

/// Columns of a terminal that a printable text (base/text/printable.h) takes: none for a combining mark, two
/// for a wide character of East Asia or an emoji, one for each other one.
std::size_t columns_of(std::string_view text);

/// The text when it fits into so many columns, else its begin and "…". Never wider than asked.
std::string cut_to(std::string_view text, std::size_t columns);

/// cut_to, then filled up with spaces to exactly these columns; on the left where `right` says so.
std::string fitted(std::string_view text, std::size_t columns, bool right = false);

}  // namespace tw
