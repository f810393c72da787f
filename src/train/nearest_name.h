// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tw {

/// Insertions, deletions and replacements of one character that turn a into b (Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Whether somebody who wrote `written` may have meant `known`: at most a third of its characters are wrong.
bool resembles(std::string_view written, std::string_view known);

}  // namespace tw
