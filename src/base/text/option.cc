// SPDX-License-Identifier: Apache-2.0
#include "base/text/option.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/number.h"

namespace tw {

std::string OptionName::with(std::string_view value) const {
  return fmt::format("{}{}{}", name, before_value, value);
}

std::string found_nothing(const OptionName& option, std::string_view meaning) {
  return fmt::format("{}: found an empty text, expected a value ({})", option.name, meaning);
}

Result<std::uint64_t> parse_count(const OptionName& option, const std::string& text, Bounds bounds) {
  const std::string expected = bounds.most == UINT64_MAX
                                   ? fmt::format("a whole number from {} on", bounds.least)
                                   : fmt::format("a whole number from {} to {}", bounds.least, bounds.most);
  const auto value = parse_number<std::uint64_t>(text);
  if (!value) return Error{fmt::format("{}: expected {}", option.with(text), expected)};
  const std::uint64_t nearest_value = std::clamp(*value, bounds.least, bounds.most);
  if (*value != nearest_value)
    return Error{fmt::format("{}: expected {}, for example {}", option.with(text), expected,
                             option.with(std::to_string(nearest_value)))};
  return *value;
}

}  // namespace tw
