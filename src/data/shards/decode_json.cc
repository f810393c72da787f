// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/number.h"
#include "data/shards/decode.h"

namespace tw::data {
namespace {

constexpr std::size_t kMostDimensions = 8;

/// Collects the numbers of nested lists of one shape.
class Numbers {
 public:
  bool take(const nlohmann::json& value, std::size_t depth) {
    if (value.is_array()) {
      if (depth >= kMostDimensions) return false;
      if (shape_.size() == depth && values_.empty()) shape_.push_back(value.size());
      if (shape_.size() <= depth || shape_[depth] != value.size()) return false;
      return std::ranges::all_of(value, [&](const nlohmann::json& part) { return take(part, depth + 1); });
    }
    if (!value.is_number() || depth != shape_.size()) return false;
    whole_ = whole_ && value.is_number_integer();
    values_.push_back(value.get<double>());
    integers_.push_back(value.is_number_integer() ? value.get<std::int64_t>() : 0);
    return true;
  }

  Array array() && {
    if (whole_) return {std::move(shape_), std::move(integers_)};
    return {std::move(shape_), std::vector<float>(values_.begin(), values_.end())};
  }

 private:
  std::vector<std::uint64_t> shape_;
  std::vector<double> values_;
  std::vector<std::int64_t> integers_;
  bool whole_ = true;
};

/// The first whole number that an int64 cannot hold; empty: none. The text has numbers and lists alone.
std::string_view too_large_in(std::string_view json) {
  constexpr std::string_view kBetween = "[], \t\r\n";
  for (std::size_t at = json.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::size_t end = std::min(json.find_first_of(kBetween, at), json.size());
    const std::string_view number = json.substr(at, end - at);
    const bool whole = number.find_first_of(".eE") == std::string_view::npos;
    if (whole && !parse_number<std::int64_t>(number)) return number;
    at = json.find_first_not_of(kBetween, end);
  }
  return {};
}

}  // namespace

Result<Array> decode_json(std::string_view bytes) {
  const auto json = nlohmann::json::parse(bytes, nullptr, false);
  Numbers numbers;
  if (json.is_discarded() || !numbers.take(json, 0))
    return Error{"expected JSON with one number, or lists of numbers of equal lengths"};
  if (const std::string_view number = too_large_in(bytes); !number.empty())
    return Error{fmt::format("expected whole numbers from -2^63 to 2^63 - 1, found {}", number)};
  return std::move(numbers).array();
}

}  // namespace tw::data
