// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/text/number.h"
#include "base/text/printable.h"
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
  const std::string_view type = text.substr(close + 1);
  const bool whole = type.starts_with(" int") || type.starts_with(" uint");
  return TensorShape{std::string(text.substr(0, open)), *shape, whole};
}

/// Bytes of an element; 0 for an unknown name.
std::uint64_t element_bytes_of(std::string_view type) {
  static constexpr std::pair<std::string_view, std::uint64_t> kTypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  const auto found = std::ranges::find(kTypes, type, [](const auto& entry) { return entry.first; });
  return found == std::end(kTypes) ? 0 : found->second;
}

/// Elements of a shape; nothing if no file can hold that many.
std::optional<std::uint64_t> elements_of(const std::vector<std::uint64_t>& shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56U;
  std::uint64_t all = 1;
  for (const std::uint64_t size : shape) {
    if (size != 0 && all > kMost / size) return std::nullopt;
    all *= size;
  }
  return all;
}

bool are_counts(const nlohmann::json& values) {
  return values.is_array() &&
         std::ranges::all_of(values, [](const nlohmann::json& v) { return v.is_number_unsigned(); });
}

/// Checks only this tensor, not the places of others.
Result<StoredTensor> stored_tensor(const std::string& name, const nlohmann::json& facts) {
  const auto expected = [&](std::string_view what) {
    return Error{fmt::format("tensor {}: expected {}", name, what)};
  };
  if (!facts.is_object()) return expected("dtype, shape and data_offsets");
  const auto type = facts.find("dtype"), shape = facts.find("shape"), offsets = facts.find("data_offsets");
  if (type == facts.end() || !type->is_string()) return expected("a dtype");
  if (shape == facts.end() || !are_counts(*shape)) return expected("a shape of whole numbers");
  if (offsets == facts.end() || !are_counts(*offsets) || offsets->size() != 2)
    return expected("data_offsets of two whole numbers");
  StoredTensor tensor{.name = name, .type = *type, .shape = *shape, .first = (*offsets)[0]};
  const std::uint64_t width = element_bytes_of(tensor.type), end = (*offsets)[1];
  if (width == 0)
    return expected(fmt::format("a dtype of safetensors, found {}", printable_line(tensor.type)));
  const auto elements = elements_of(tensor.shape);
  if (!elements || end < tensor.first || end - tensor.first != *elements * width)
    return expected(fmt::format("{} bytes for {} of {}, found data_offsets {} and {}",
                                elements ? std::to_string(*elements * width) : "no more than a file holds",
                                tensor.type, shape_text(tensor.shape), tensor.first, end));
  tensor.bytes = end - tensor.first;
  return tensor;
}

/// nlohmann's parser keeps the last of equal names; this one refuses them, and deep nesting.
Result<nlohmann::json> parse_header(std::string_view text) {
  constexpr int kDeepest = 3;  // the header, a tensor, its shape
  std::vector<std::set<std::string>> names;
  std::string fault;
  const auto look = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end && !names.empty()) names.pop_back();
    const bool begins = event == Event::object_start || event == Event::array_start;
    if (begins && depth >= kDeepest && fault.empty()) fault = "values are nested deeper than in safetensors";
    if (event == Event::key && !names.empty() && !names.back().insert(value).second && fault.empty())
      fault = fmt::format("two values have the name {}", printable_line(value.get<std::string>()));
    return fault.empty();
  };
  nlohmann::json header = nlohmann::json::parse(text, look, /*allow_exceptions=*/false);
  if (!fault.empty()) return Error{fault};
  if (!header.is_object()) return Error{"its header is no JSON object"};
  return header;
}

/// Tensors must follow one another without gaps, and end with the file.
Status check_places(const std::vector<StoredTensor>& tensors, std::uint64_t bytes) {
  std::uint64_t next = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.first != next)
      return Error{
          fmt::format("tensor {}: expected to begin at byte {} of the data (no gaps, no overlaps), found {}",
                      tensor.name, next, tensor.first)};
    next += tensor.bytes;
  }
  if (next != bytes)
    return Error{fmt::format("its tensors have {} bytes, while {} follow the header", next, bytes)};
  return Unit{};
}

}  // namespace

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> file) {
  if (file.size() < kAlignment)
    return Error{fmt::format("not safetensors: expected at least 8 bytes, found {}", file.size())};
  std::uint64_t length = 0;
  for (std::size_t i = kAlignment; i-- > 0;) length = length << 8U | std::to_integer<std::uint8_t>(file[i]);
  const std::uint64_t rest = file.size() - kAlignment;
  if (length > kMostSafetensorsHeader || length > rest)
    return Error{fmt::format("not safetensors, or truncated: its header has {} bytes, expected at most {}",
                             length, std::min(kMostSafetensorsHeader, rest))};
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kAlignment, length);
  if (!text.starts_with('{')) return Error{"not safetensors: its header does not begin with {"};
  const auto header = parse_header(text);
  if (!header) return header.error();
  SafetensorsHeader read{.bytes = kAlignment + length};
  for (const auto& [name, facts] : header.value().items()) {
    if (name == "__metadata__") continue;
    auto tensor = stored_tensor(printable_line(name), facts);
    if (!tensor) return tensor.error();
    tensor.value().name = name;
    read.tensors.push_back(std::move(tensor).value());
  }
  std::ranges::sort(read.tensors, {},
                    [](const StoredTensor& t) { return std::pair(t.first, t.first + t.bytes); });
  if (const Status places = check_places(read.tensors, rest - length); !places) return places.error();
  return read;
}

std::uint64_t TensorShape::count() const {
  std::uint64_t all = 1;
  for (const std::uint64_t size : shape) all *= size;
  return all;
}

std::string safetensors_header(const std::vector<TensorShape>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorShape& tensor : tensors) {
    if (tensor.inner) continue;
    const std::uint64_t end = at + tensor.count() * (tensor.whole ? sizeof(std::int64_t) : sizeof(float));
    header[tensor.name] = {
        {"dtype", tensor.whole ? "I64" : "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
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
    const bool inner = line.starts_with("led: ") || line.starts_with("updates: ");
    const bool names_one = inner || line.starts_with("group ") || line.starts_with("buffer: ");
    const std::size_t colon = line.find(": ");
    if (!names_one || colon == std::string::npos) continue;
    auto tensor = tensor_in(std::string_view(line).substr(colon + 2));
    if (!tensor) return Error{fmt::format("expected NAME (SIZES) DTYPE, found {}", line)};
    tensor->inner = inner;
    if (!inner && !names.insert(tensor->name).second)
      return Error{fmt::format("two tensors have the name {}", tensor->name)};
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace tw::data
