// SPDX-License-Identifier: Apache-2.0
#include "base/text/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace tw {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// Bytes of the UTF-8 character at the front, by its first byte; 0 for an invalid first byte.
std::size_t expected_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/// False for overlong forms, surrogates and values beyond U+10FFFF (RFC 3629, table of section 4).
bool second_byte_fits(unsigned char first, unsigned char second) {
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second < 0xa0;
  if (first == 0xf0) return second >= 0x90;
  return first != 0xf4 || second < 0x90;
}

/// C1 controls (U+0080 to U+009F), line and paragraph separators and bidirectional controls (U+2028 to
/// U+202E, U+2066 to U+2069).
bool commands_a_terminal(unsigned char first, unsigned char second, unsigned char third) {
  if (first == 0xc2) return second < 0xa0;
  if (first != 0xe2) return false;
  return (second == 0x80 && third >= 0xa8 && third <= 0xae) ||
         (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}

/// Bytes of the character at the front if a terminal may show it, else 0.
std::size_t harmless_length(std::string_view text) {
  const unsigned char first = byte_at(text, 0), second = byte_at(text, 1);
  const std::size_t length = expected_length(first);
  if (length == 1) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (length == 0 || !second_byte_fits(first, second)) return 0;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte_at(text, at) & 0xc0) != 0x80) return 0;
  return commands_a_terminal(first, second, byte_at(text, 2)) ? 0 : length;
}

std::string escaped(std::string_view text, bool one_line) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const char front = text.front();
    const bool space = front == '\n' || front == '\t';
    const std::size_t length = space && !one_line ? 1 : harmless_length(text);
    if (length > 0) {
      result += text.substr(0, length);
    } else if (space) {
      result += front == '\n' ? "\\n" : "\\t";
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(front));
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, false); }

std::string printable_line(std::string_view text) { return escaped(text, true); }

bool is_printable_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = harmless_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace tw
