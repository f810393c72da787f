// SPDX-License-Identifier: Apache-2.0
#include "data/shards/decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/result.h"
#include "base/text/number.h"

namespace tw::data {
namespace {

constexpr std::array<std::string_view, 9> kDecoded = {"jpg", "jpeg",  "png", "npy", "cls",
                                                      "id",  "index", "txt", "json"};

std::string_view kind_of(std::string_view field) {
  const std::size_t dot = field.rfind('.');
  return dot == std::string_view::npos ? field : field.substr(dot + 1);
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string quoted_begin(std::string_view text) {
  constexpr std::size_t kShown = 40;
  return fmt::format("\"{}\"{}", text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

/// A number that people and NumPy may write as +1, 007, .5 or 1. as JSON does; any other word as it is.
std::string as_json(std::string_view word) {
  constexpr std::string_view kDigits = "0123456789";
  const auto has_digit = [&](std::size_t at) {
    return at < word.size() && kDigits.find(word[at]) != std::string_view::npos;
  };
  const bool is_plus = word.starts_with('+') && (has_digit(1) || word.substr(1).starts_with('.'));
  std::string number(word.starts_with('-') ? "-" : "");
  if (is_plus || !number.empty()) word.remove_prefix(1);
  const std::size_t point = std::min(word.find_first_not_of(kDigits), word.size());
  std::string_view whole = word.substr(0, point);
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  number += whole;
  if (!word.substr(point).starts_with('.')) return number.append(word.substr(point));
  if (whole.empty() && has_digit(point + 1)) number += '0';
  number += '.';
  if (!whole.empty() && !has_digit(point + 1)) number += '0';
  return number.append(word.substr(point + 1));
}

/// Numbers with blanks between them.
Result<Array> decode_text(std::string_view bytes) {
  std::string words = "[";
  for (const char c : without_blanks(bytes)) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank || words.back() != ',') words += blank ? ',' : c;
  }
  std::string list;
  for (std::size_t at = 1; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    list += (list.empty() ? '[' : ',') + as_json(std::string_view(words).substr(at, end - at));
    at = end + 1;
  }
  auto numbers = decode_json(list + "]");
  if (numbers || numbers.error().lasting) return numbers;
  return Error{fmt::format("expected numbers, found {}", quoted_begin(bytes))};
}

Result<Array> decode_class(std::string_view bytes) {
  const auto number = parse_number<std::int64_t>(without_blanks(bytes));
  if (!number) return Error{fmt::format("expected a whole number, found {}", quoted_begin(bytes))};
  return Array{{}, std::vector<std::int64_t>{*number}};
}

}  // namespace

std::string decoded_fields() { return fmt::format("{}", fmt::join(kDecoded, ", ")); }

bool is_decoded(std::string_view field) {
  return std::ranges::find(kDecoded, kind_of(field)) != kDecoded.end();
}

bool may_hold_anything(std::string_view field) {
  const std::string_view kind = kind_of(field);
  return kind == "txt" || kind == "json";
}

Result<Array> decode_field(std::string_view field, std::string_view bytes, const PictureOptions& picture) {
  const std::string_view kind = kind_of(field);
  if (kind == "jpg" || kind == "jpeg" || kind == "png") return decode_picture(bytes, picture);
  if (kind == "npy") return decode_npy(bytes);
  if (kind == "cls" || kind == "id" || kind == "index") return decode_class(bytes);
  if (kind == "json") return decode_json(bytes);
  if (kind == "txt") return decode_text(bytes);
  return Error{fmt::format("no decoder for .{}, expected {}", field, decoded_fields())};
}

}  // namespace tw::data
