// SPDX-License-Identifier: Apache-2.0
#include "data/shards/decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

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

/// Numbers with blanks between them.
Result<Array> decode_text(std::string_view bytes) {
  std::string list = "[";
  for (const char c : without_blanks(bytes)) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank || list.back() != ',') list += blank ? ',' : c;
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

/// Numpy's name of the type, without its byte order.
struct NpyHead {
  std::string type;
  std::vector<std::uint64_t> shape;
  std::size_t data = 0;  ///< where the values begin
};

/// The text after "'name':" in the header.
std::string_view value_of(std::string_view header, std::string_view name) {
  const std::size_t at = header.find(fmt::format("'{}'", name));
  if (at == std::string_view::npos) return {};
  const std::size_t colon = header.find(':', at);
  return colon == std::string_view::npos ? std::string_view{} : without_blanks(header.substr(colon + 1));
}

Result<NpyHead> npy_head(std::string_view bytes) {
  const Error wrong{"no npy file of numpy (NEP 1)"};
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) return wrong;
  const bool wide = bytes[6] >= 2;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
  NpyHead head{.data = (wide ? 12U : 10U) + std::size_t{length}};
  if (head.data > bytes.size()) return wrong;
  const std::string_view header = bytes.substr(wide ? 12 : 10, length);
  const std::string_view type = value_of(header, "descr"), order = value_of(header, "fortran_order");
  if (type.size() < 4 || type.front() != '\'' || order.empty()) return wrong;
  head.type = type.substr(1, type.find('\'', 1) - 1);
  if (head.type.size() < 2) return wrong;
  if (order.starts_with("True")) return Error{"an npy file in Fortran's order, expected C's order"};
  std::string_view shape = value_of(header, "shape");
  const std::size_t end = shape.find(')');
  if (!shape.starts_with('(') || end == std::string_view::npos) return wrong;
  shape = shape.substr(1, end - 1);
  while (!without_blanks(shape).empty()) {
    const std::size_t comma = std::min(shape.find(','), shape.size());
    const auto size = parse_number<std::uint64_t>(without_blanks(shape.substr(0, comma)));
    if (!size) return wrong;
    head.shape.push_back(*size);
    shape.remove_prefix(std::min(comma + 1, shape.size()));
  }
  return head;
}

template <class From, class To>
std::vector<To> converted(std::string_view bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (std::size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = static_cast<To>(value);
  }
  return values;
}

Result<std::vector<float>> narrowed(std::string_view bytes) {
  const std::vector<double> wide = converted<double, double>(bytes);
  const auto beyond = std::ranges::find_if_not(wide, fits_float32);
  if (beyond != wide.end()) return Error{beyond_float32(fmt::to_string(*beyond))};
  return std::vector<float>(wide.begin(), wide.end());
}

float half_value(std::uint16_t half) {
  const int exponent = half >> 10U & 0x1f;
  const auto fraction = static_cast<float>(half & 0x3ffU);
  float value = exponent == 0    ? std::ldexp(fraction, -24)
                : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                 : std::ldexp(fraction + 1024, exponent - 25);
  return (half & 0x8000U) != 0 ? -value : value;
}

std::vector<float> halves(std::string_view bytes) {
  std::vector<float> values;
  for (const std::uint16_t half : converted<std::uint16_t, std::uint16_t>(bytes))
    values.push_back(half_value(half));
  return values;
}

}  // namespace

Result<Array> decode_npy(std::string_view bytes) {
  TW_TRY(auto head, npy_head(bytes));
  const std::string& type = head.type;
  const std::string_view kind = std::string_view(type).substr(1);
  const std::string_view values = bytes.substr(head.data);
  if (type.front() == '>')
    return Error{fmt::format("an npy file of type {}: byte order big-endian, expected little", type)};
  const auto width = parse_number<std::uint64_t>(kind.substr(std::min<std::size_t>(1, kind.size())));
  std::uint64_t expected = width.value_or(0);
  for (const std::uint64_t size : head.shape) {
    if (size != 0 && expected > values.size() / size) return Error{"an npy file that is cut off"};
    expected *= size;
  }
  if (expected != values.size())
    return Error{fmt::format("an npy file of type {} and shape [{}] with {} bytes of values", type,
                             fmt::join(head.shape, ", "), values.size())};
  Array array{std::move(head.shape), std::vector<float>{}};
  if (kind == "f8") {
    TW_TRY(array.values, narrowed(values));
    return array;
  }
  if (kind == "f4")
    array.values = converted<float, float>(values);
  else if (kind == "f2")
    array.values = halves(values);
  else if (kind == "u1" || kind == "b1")
    array.values = converted<std::uint8_t, std::int64_t>(values);
  else if (kind == "i1")
    array.values = converted<std::int8_t, std::int64_t>(values);
  else if (kind == "i2")
    array.values = converted<std::int16_t, std::int64_t>(values);
  else if (kind == "u2")
    array.values = converted<std::uint16_t, std::int64_t>(values);
  else if (kind == "i4")
    array.values = converted<std::int32_t, std::int64_t>(values);
  else if (kind == "u4")
    array.values = converted<std::uint32_t, std::int64_t>(values);
  else if (kind == "i8")
    array.values = converted<std::int64_t, std::int64_t>(values);
  else
    return Error{fmt::format("an npy file of type {}, expected whole or real numbers", type)};
  return array;
}

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
