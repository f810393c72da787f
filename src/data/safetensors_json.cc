// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/number.h"
#include "data/safetensors.h"

namespace tw::data {
namespace {

constexpr std::size_t kAlignment = 8;

/// "(10, 20)", "(10,)", "()".
std::optional<std::vector<std::uint64_t>> shape_in(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::uint64_t> shape;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto size = parse_number<std::uint64_t>(text.substr(0, comma));
    if (!size) return std::nullopt;
    shape.push_back(*size);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return shape;
}

std::optional<TensorShape> tensor_in(std::string_view text) {
  const std::size_t open = text.rfind(" ("), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const auto shape = shape_in(text.substr(open + 1, close - open));
  if (!shape || open == 0) return std::nullopt;
  return TensorShape{std::string(text.substr(0, open)), *shape};
}

}  // namespace

std::uint64_t TensorShape::count() const {
  std::uint64_t all = 1;
  for (const std::uint64_t size : shape) all *= size;
  return all;
}

std::string safetensors_header(const std::vector<TensorShape>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorShape& tensor : tensors) {
    const std::uint64_t end = at + tensor.count() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string length;
  for (std::size_t i = 0; i < kAlignment; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

Result<std::vector<TensorShape>> tensors_in_layout(std::string_view layout) {
  std::vector<TensorShape> tensors;
  std::set<std::string> names;
  std::istringstream lines{std::string(layout)};
  for (std::string line; std::getline(lines, line);) {
    const bool names_one = line.starts_with("group ") || line.starts_with("buffer: ");
    const std::size_t colon = line.find(": ");
    if (!names_one || colon == std::string::npos) continue;
    auto tensor = tensor_in(std::string_view(line).substr(colon + 2));
    if (!tensor) return Error{fmt::format("expected NAME (SIZES) DTYPE, found {}", line)};
    if (!names.insert(tensor->name).second)
      return Error{fmt::format("two tensors have the name {}", tensor->name)};
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace tw::data
