// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tw {

/// The text in a form safe for a terminal: control characters, DEL, bytes that are not UTF-8, and characters
/// that change the writing direction become \xNN, byte by byte. So a file or another peer cannot move the
/// cursor, change colours or hide part of a message. Line ends and tabs stay.
std::string printable(std::string_view text);

/// The same for a text that has to stay in one line: line ends and tabs become \n and \t.
std::string printable_line(std::string_view text);

/// True if a name in a file is plain text: printable_line() would change nothing.
bool is_printable_line(std::string_view text);

}  // namespace tw
