// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "data/shards/decode.h"

namespace tw::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values of little-endian files are copied");

struct NpyHead {
  std::string type;  ///< numpy's name, such as "<f4"
  std::vector<std::uint64_t> shape;
  bool fortran_order = false;
  std::size_t data = 0;  ///< where the values begin
};

/// The text after "'name':" in the header.
std::string_view value_of(std::string_view header, std::string_view name) {
  const std::size_t at = header.find(fmt::format("'{}'", name));
  if (at == std::string_view::npos) return {};
  const std::size_t colon = header.find(':', at);
  return colon == std::string_view::npos ? std::string_view{} : trimmed(header.substr(colon + 1));
}

/// "(3, 4)"; nothing: it is no shape.
std::optional<std::vector<std::uint64_t>> shape_in(std::string_view text) {
  const std::size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  text = text.substr(1, end - 1);
  std::vector<std::uint64_t> shape;
  while (!trimmed(text).empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto size = parse_number<std::uint64_t>(trimmed(text.substr(0, comma)));
    if (!size) return std::nullopt;
    shape.push_back(*size);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return shape;
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
  if (type.starts_with('[')) return Error{"an npy file of records, expected one array of numbers"};
  if (type.size() < 4 || type.front() != '\'' || order.empty()) return wrong;
  head.type = type.substr(1, type.find('\'', 1) - 1);
  head.fortran_order = order.starts_with("True");
  auto shape = shape_in(value_of(header, "shape"));
  if (head.type.size() < 2 || !shape) return wrong;
  head.shape = std::move(*shape);
  return head;
}

using Values = decltype(Array::values);

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

template <class From>
Result<Values> whole(std::string_view bytes) {
  return Values(converted<From, std::int64_t>(bytes));
}

Result<Values> long_whole(std::string_view bytes) {
  const auto values = converted<std::uint64_t, std::uint64_t>(bytes);
  const auto beyond = std::ranges::find_if(
      values, [](std::uint64_t value) { return value > std::numeric_limits<std::int64_t>::max(); });
  if (beyond != values.end()) return Error{fmt::format("{}: a whole number beyond int64", *beyond)};
  return Values(std::vector<std::int64_t>(values.begin(), values.end()));
}

Result<Values> doubles(std::string_view bytes) {
  const std::vector<double> wide = converted<double, double>(bytes);
  const auto beyond = std::ranges::find_if_not(wide, fits_float32);
  if (beyond != wide.end()) return Error{beyond_float32(fmt::to_string(*beyond))};
  return Values(std::vector<float>(wide.begin(), wide.end()));
}

Result<Values> floats(std::string_view bytes) { return Values(converted<float, float>(bytes)); }

float half_value(std::uint16_t half) {
  const int exponent = half >> 10U & 0x1f;
  const auto fraction = static_cast<float>(half & 0x3ffU);
  float value = exponent == 0    ? std::ldexp(fraction, -24)
                : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                 : std::ldexp(fraction + 1024, exponent - 25);
  return (half & 0x8000U) != 0 ? -value : value;
}

Result<Values> halves(std::string_view bytes) {
  std::vector<float> values;
  for (const std::uint16_t half : converted<std::uint16_t, std::uint16_t>(bytes))
    values.push_back(half_value(half));
  return Values(std::move(values));
}

struct NpyKind {
  std::string_view name;  ///< numpy's, without the byte order
  std::size_t width = 0;
  Result<Values> (*read)(std::string_view bytes) = nullptr;
};

constexpr NpyKind kNpyKinds[] = {{"f8", 8, doubles},
                                 {"f4", 4, floats},
                                 {"f2", 2, halves},
                                 {"b1", 1, whole<std::uint8_t>},
                                 {"u1", 1, whole<std::uint8_t>},
                                 {"i1", 1, whole<std::int8_t>},
                                 {"u2", 2, whole<std::uint16_t>},
                                 {"i2", 2, whole<std::int16_t>},
                                 {"u4", 4, whole<std::uint32_t>},
                                 {"i4", 4, whole<std::int32_t>},
                                 {"u8", 8, long_whole},
                                 {"i8", 8, whole<std::int64_t>}};

/// Items of `width` bytes, the first index fastest, as those with the last index fastest.
std::string in_c_order(std::string_view values, const std::vector<std::uint64_t>& shape, std::size_t width) {
  std::vector<std::size_t> strides(shape.size(), width), at(shape.size(), 0);
  for (std::size_t i = 1; i < shape.size(); ++i) strides[i] = strides[i - 1] * shape[i - 1];
  std::string ordered;
  ordered.reserve(values.size());
  while (ordered.size() < values.size()) {
    ordered +=
        values.substr(std::inner_product(at.begin(), at.end(), strides.begin(), std::size_t{0}), width);
    for (std::size_t i = shape.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return ordered;
}

std::string little_endian(std::string_view values, std::size_t width) {
  std::string swapped(values);
  for (auto item = swapped.begin(); item != swapped.end(); item += static_cast<std::ptrdiff_t>(width))
    std::reverse(item, item + static_cast<std::ptrdiff_t>(width));
  return swapped;
}

}  // namespace

Result<Array> decode_npy(std::string_view bytes) {
  TW_TRY(auto head, npy_head(bytes));
  const std::string_view name = std::string_view(head.type).substr(1);
  const auto* const kind = std::ranges::find(kNpyKinds, name, &NpyKind::name);
  if (kind == std::end(kNpyKinds))
    return Error{
        fmt::format("an npy file of type {}, expected whole or real numbers of at most 64 bits", head.type)};
  std::string_view values = bytes.substr(head.data);
  std::uint64_t expected = kind->width;
  for (const std::uint64_t size : head.shape) {
    if (size != 0 && expected > values.size() / size) return Error{"an npy file that is cut off"};
    expected *= size;
  }
  if (expected > values.size()) return Error{"an npy file that is cut off"};
  if (expected < values.size())
    return Error{fmt::format("an npy file of type {} and shape [{}] with {} bytes behind the values",
                             head.type, fmt::join(head.shape, ", "), values.size() - expected)};
  std::string ordered, swapped;
  if (head.fortran_order && head.shape.size() > 1)
    values = ordered = in_c_order(values, head.shape, kind->width);
  if (head.type.front() == '>') values = swapped = little_endian(values, kind->width);
  TW_TRY(auto read, kind->read(values));
  return Array{std::move(head.shape), std::move(read)};
}

}  // namespace tw::data
