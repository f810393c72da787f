// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tw {

/// Number of insertions, deletions and replacements of one character, and swaps of two neighbours, that turn
/// a into b; no edit changes what another one did (Damerau 1964). "A" and "a" are the same.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// True if a user who wrote `written` may have meant `known`: at most a third of its characters are wrong.
bool resembles(std::string_view written, std::string_view known);

/// The known name that a user who wrote `written` may have meant; empty when none resembles it.
std::string nearest_name(std::string_view written, std::span<const std::string> known);

}  // namespace tw
