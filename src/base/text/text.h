// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw {

/// ASCII letters only, as in the next two.
inline char lower_letter(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

inline std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower_letter);
  return result;
}

/// In any case of its letters.
inline bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower_letter, lower_letter);
}

/// "1 shard", "2 shards".
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// The text without spaces and tabs around it.
inline std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// The last line that is not blank, without what is around it: programs that fail say why in it, and some end
/// their lines with CR LF. Empty: there is none.
inline std::string_view last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  return trimmed(text.substr(text.find_last_of("\r\n") + 1));
}

/// The text of a file without the mark with which editors of Windows begin UTF-8.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

/// What is wrong with a path that a shell would have expanded; empty: nothing.
inline std::string_view home_fault(std::string_view path) {
  return path.starts_with('~') ? "only a shell takes ~ for a home folder; write the whole path" : "";
}

}  // namespace tw
