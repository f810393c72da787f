// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tw {

/// The text as a terminal may show it: control characters, DEL, bytes that are not UTF-8, and characters that
/// turn the direction of writing become \xNN, byte by byte. So a file or another peer cannot move the cursor,
/// change colours or hide part of a message. Line ends and tabs stay.
std::string printable(std::string_view text);

/// The same for a text that is to stay in one line: line ends and tabs become \n and \t.
std::string printable_line(std::string_view text);

/// Whether a name in a file is plain text: printable_line() would change nothing.
bool is_printable_line(std::string_view text);

}  // namespace tw
