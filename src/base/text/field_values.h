// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/text/duration.h"
#include "base/text/field_table.h"

/// How the values of files are written. A table adds kinds of its own by deriving from these three, with
/// `using ExpectedValue::operator();`. An enum needs `names_of(Enum)` in its namespace: a span of names in
/// the order of its constants.
namespace tw {

template <class Enum>
concept Named = std::is_enum_v<Enum> && requires(Enum value) {
  names_of(value);
};

/// What may stand there, for messages and references.
struct ExpectedValue {
  const NumberBounds& bounds;

  std::string operator()(const bool*) const { return "true or false"; }

  std::string operator()(const std::optional<bool>*) const { return "true or false"; }

  template <std::integral Whole>
  std::string operator()(const Whole*) const {
    return whole_number_text(bounds);
  }

  std::string operator()(const double*) const { return number_text(bounds); }

  std::string operator()(const std::optional<double>*) const { return number_text(bounds); }

  std::string operator()(const Duration*) const { return std::string(kDurationWords); }

  std::string operator()(const std::string*) const { return "a name"; }

  template <Named Enum>
  std::string operator()(const Enum*) const {
    return fmt::format("{}", fmt::join(names_of(Enum{}), " or "));
  }

  template <Named Enum>
  std::string operator()(const std::vector<Enum>*) const {
    return fmt::format("one or a list of {}", fmt::join(names_of(Enum{}), ", "));
  }
};

/// The present value as it would be written; empty: there is none.
struct WrittenValue {
  const NumberUnit& unit;

  std::string operator()(const bool* at) const { return fmt::to_string(*at); }

  template <std::integral Whole>
  std::string operator()(const Whole* at) const {
    return fmt::to_string(*at);
  }

  std::string operator()(const double* at) const { return number(*at); }

  template <class Value>
  std::string operator()(const std::optional<Value>* at) const {
    return *at ? (*this)(&**at) : "";
  }

  std::string operator()(const Duration* at) const { return fmt::format("{}s", to_seconds(*at)); }

  std::string operator()(const std::string* at) const { return *at; }

  template <Named Enum>
  std::string operator()(const Enum* at) const {
    return std::string(names_of(*at)[static_cast<std::size_t>(*at)]);
  }

  template <Named Enum>
  std::string operator()(const std::vector<Enum>* at) const {
    std::vector<std::string> names;
    for (const Enum one : *at) names.push_back((*this)(&one));
    return fmt::format("[{}]", fmt::join(names, ", "));
  }

  std::string number(double si) const { return fmt::format("{:.12g}", unit.in_file(si)); }
};

/// Stores a value; returns the complaint about it, or an empty string.
struct ValueAssignment {
  const GivenValue& given;
  const NumberBounds& bounds;
  const NumberUnit& unit;
  const std::string& expected;

  std::string operator()(bool* at) const { return store_truth(at); }

  std::string operator()(std::optional<bool>* at) const { return store_truth(at); }

  template <std::integral Whole>
  std::string operator()(Whole* at) const {
    const std::string wrong = store(number_in<Whole>(word(), bounds), at);
    const bool is_whole = !word().empty() && word().find_first_not_of("0123456789") == std::string::npos;
    if (wrong.empty() || !is_whole || bounds.high != kInfinity || parse_number<Whole>(word())) return wrong;
    return wrong + fmt::format("; the largest is {}", std::numeric_limits<Whole>::max());
  }

  std::string operator()(double* at) const { return store(number(word()), at); }

  std::string operator()(std::optional<double>* at) const { return store(number(word()), at); }

  std::string operator()(Duration* at) const { return store(parse_duration(word()), at); }

  std::string operator()(std::string* at) const {
    if (word().empty()) return complaint();
    *at = word();
    return "";
  }

  template <Named Enum>
  std::string operator()(Enum* at) const {
    std::vector<Enum> one;
    std::string wrong = given.is_list ? complaint() : (*this)(&one);
    if (wrong.empty()) *at = one.front();
    return wrong;
  }

  template <Named Enum>
  std::string operator()(std::vector<Enum>* at) const {
    const auto names = names_of(Enum{});
    std::vector<Enum> found;
    for (const std::string& one : given.words) {
      const auto name = std::ranges::find(names, one);
      if (name == names.end()) return unexpected(expected, one) + did_you_mean(one, names);
      found.push_back(static_cast<Enum>(name - names.begin()));
    }
    if (found.empty()) return complaint();
    *at = std::move(found);
    return "";
  }

 protected:
  /// Empty where a list was given.
  std::string word() const { return given.is_list ? "" : given.words.front(); }

  /// In the unit of the struct.
  std::optional<double> number(const std::string& text) const {
    const auto number = number_in<double>(text, bounds);
    return number ? std::optional(unit.in_struct(*number)) : std::nullopt;
  }

  template <class At>
  std::string store_truth(At* at) const {
    const std::string wrong = store(truth_in(word()), at);
    return wrong.empty() ? wrong : wrong + meant_truth(word());
  }

  template <class Value, class At>
  std::string store(const std::optional<Value>& value, At* at) const {
    if (value) *at = *value;
    return value ? "" : complaint();
  }

  std::string complaint() const {
    return given.is_list ? fmt::format("expected {}, found {}", expected, given.text())
                         : unexpected(expected, given.words.front());
  }
};

template <class Expected, class Row, class Target>
std::string expected_at(const Row& row, Target& defaults) {
  return std::visit(Expected{row.bounds}, row.place(defaults));
}

/// All keys, with what may stand there and their values in `target`.
template <class Expected, class Written, class Row, class Target>
std::vector<FieldRow> rows_of(std::span<const Row> table, Target target) {
  std::vector<FieldRow> rows;
  for (const Row& row : table)
    rows.push_back({key_of(row), expected_at<Expected>(row, target),
                    std::visit(Written{row.unit}, row.place(target)), row.meaning});
  return rows;
}

/// The same as a Markdown table.
template <class Expected, class Written, class Row, class Target>
std::string reference_of(std::span<const Row> table, Target defaults) {
  return reference_of(rows_of<Expected, Written, Row>(table, defaults));
}

/// Stores a value; returns the complaint about it, or an empty string.
template <class Expected, class Assignment, class Row, class Target>
std::string assign_field(const Row& row, const GivenValue& given, Target& target) {
  const std::string expected = expected_at<Expected>(row, target);
  return std::visit(Assignment{given, row.bounds, row.unit, expected}, row.place(target));
}

}  // namespace tw
