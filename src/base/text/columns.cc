// SPDX-License-Identifier: Apache-2.0
#include "base/text/columns.h"

#include <algorithm>

namespace tw {
namespace {

constexpr std::string_view kCut = "…";

struct CodeRange {
  char32_t first, last;
};

/// Combining marks, joiners and variation selectors (Unicode 15, Mn and Me of the scripts that names use).
constexpr CodeRange kNoColumn[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f},
                                   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},
                                   {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

/// EastAsianWidth.txt: W and F.
constexpr CodeRange kTwoColumns[] = {
    {0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <std::size_t Count>
bool is_in(const CodeRange (&ranges)[Count], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

std::size_t bytes_of_first(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return std::min(length, text.size());
}

std::size_t columns_of_first(std::string_view text) {
  const std::size_t length = bytes_of_first(text);
  if (length == 1) return 1;
  char32_t code = static_cast<unsigned char>(text.front()) & (0xffU >> (length + 1));
  for (std::size_t at = 1; at < length; ++at)
    code = code << 6 | (static_cast<unsigned char>(text[at]) & 0x3fU);
  return is_in(kNoColumn, code) ? 0 : is_in(kTwoColumns, code) ? 2 : 1;
}

/// Bytes of the longest beginning that fits.
std::size_t bytes_within(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  for (std::size_t used = 0; bytes < text.size(); bytes += bytes_of_first(text.substr(bytes))) {
    used += columns_of_first(text.substr(bytes));
    if (used > columns) break;
  }
  return bytes;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (; !text.empty(); text.remove_prefix(bytes_of_first(text))) columns += columns_of_first(text);
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (bytes_within(text, columns) == text.size()) return std::string(text);
  if (columns == 0) return "";
  return std::string(text.substr(0, bytes_within(text, columns - 1))) + std::string(kCut);
}

std::string fitted(std::string_view text, std::size_t columns, bool right) {
  std::string cut = cut_to(text, columns);
  const std::string space(columns - columns_of(cut), ' ');
  return right ? space + cut : cut + space;
}

}  // namespace tw
