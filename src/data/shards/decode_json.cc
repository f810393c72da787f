// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text/text.h"
#include "data/shards/decode.h"

namespace tw::data {
namespace {

constexpr std::size_t kMostDimensions = 8;

using Json = nlohmann::json;

/// Collects the numbers of nested lists of one shape. Each event returns false where the text is something
/// else, or where a number is too large, which ends the reading.
class Numbers final : public nlohmann::json_sax<Json> {
 public:
  bool number_integer(Json::number_integer_t value) override {
    return take(static_cast<double>(value), value);
  }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (value > static_cast<Json::number_unsigned_t>(INT64_MAX)) return refuse(fmt::to_string(value));
    return take(static_cast<double>(value), static_cast<std::int64_t>(value));
  }

  bool number_float(Json::number_float_t value, const std::string& text) override {
    if (is_whole(text) || !fits_float32(value)) return refuse(text);
    whole_ = false;
    return take(value, 0);
  }

  bool start_array(std::size_t /*size*/) override {
    const std::size_t depth = counts_.size();
    if (depth >= kMostDimensions || (sizes_.size() == depth && !values_.empty())) return false;
    if (depth > 0) ++counts_.back();
    counts_.push_back(0);
    if (sizes_.size() == depth) sizes_.emplace_back();
    return true;
  }

  bool end_array() override {
    const std::uint64_t count = counts_.back();
    counts_.pop_back();
    auto& size = sizes_[counts_.size()];
    if (!size) size = count;
    return *size == count;
  }

  bool null() override { return false; }

  bool boolean(bool /*value*/) override { return false; }

  bool string(std::string& /*text*/) override { return false; }

  bool binary(Json::binary_t& /*bytes*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return false; }

  bool key(std::string& /*text*/) override { return false; }

  bool end_object() override { return false; }

  bool parse_error(std::size_t /*place*/, const std::string& word, const Json::exception& error) override {
    constexpr int kOverflow = 406;  // beyond float64, where number_float() would get an infinity
    return error.id == kOverflow ? refuse(word) : false;
  }

  Array array() && {
    std::vector<std::uint64_t> shape;
    for (const auto& size : sizes_) shape.push_back(size.value_or(0));
    if (whole_) return {std::move(shape), std::move(integers_)};
    return {std::move(shape), std::vector<float>(values_.begin(), values_.end())};
  }

  /// What was expected in place of a number that is too large; empty: there is none.
  const std::string& too_large() const { return too_large_; }

 private:
  static bool is_whole(const std::string& text) {
    return text.find_first_not_of("-0123456789") == std::string::npos;
  }

  /// Numbers stand in the innermost lists alone.
  bool take(double value, std::int64_t integer) {
    if (counts_.size() != sizes_.size()) return false;
    if (!counts_.empty()) ++counts_.back();
    values_.push_back(value);
    integers_.push_back(integer);
    return true;
  }

  bool refuse(const std::string& text) {
    too_large_ = is_whole(text) ? fmt::format("expected whole numbers from -2^63 to 2^63 - 1, found {}", text)
                                : beyond_float32(text);
    return false;
  }

  std::vector<std::optional<std::uint64_t>> sizes_;  // of the lists, from the outermost on, once one ended
  std::vector<std::uint64_t> counts_;                // of the values in each list that is open
  std::vector<double> values_;
  std::vector<std::int64_t> integers_;
  std::string too_large_;
  bool whole_ = true;
};

/// A caption may begin with a long number.
bool has_numbers_alone(std::string_view text) {
  return text.find_first_not_of("0123456789+-.eE[], \t\r\n") == std::string_view::npos;
}

}  // namespace

bool fits_float32(double value) { return !std::isfinite(value) || std::isfinite(static_cast<float>(value)); }

std::string beyond_float32(const std::string& number) {
  return fmt::format("expected real numbers from -3.4e38 to 3.4e38 (float32), found {}", number);
}

Result<Array> decode_json(std::string_view bytes) {
  bytes = without_byte_order_mark(bytes);
  Numbers numbers;
  if (Json::sax_parse(bytes, &numbers)) return std::move(numbers).array();
  if (!numbers.too_large().empty() && has_numbers_alone(bytes))
    return Error{.message = numbers.too_large(), .lasting = true};
  return Error{"expected JSON with one number, or lists of numbers of equal lengths"};
}

}  // namespace tw::data
