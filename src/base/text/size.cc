// SPDX-License-Identifier: Apache-2.0
#include "base/text/size.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/text/number.h"

namespace tw {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 7> kSizeUnits{{{"GiB", 1ULL << 30},
                                                                                {"GB", 1'000'000'000},
                                                                                {"MiB", 1ULL << 20},
                                                                                {"MB", 1'000'000},
                                                                                {"KiB", 1ULL << 10},
                                                                                {"kB", 1'000},
                                                                                {"B", 1}}};
constexpr std::uint64_t kLargest = 1ULL << 40;

}  // namespace

std::optional<std::uint64_t> parse_size(const std::string& text) {
  std::uint64_t unit = 1;
  std::string_view digits = text;
  for (const auto& [name, bytes] : kSizeUnits) {
    if (!digits.ends_with(name)) continue;
    unit = bytes;
    digits.remove_suffix(name.size());
    break;
  }
  const auto number = parse_number<std::uint64_t>(digits);
  if (!number || *number == 0 || *number > kLargest / unit) return std::nullopt;
  return *number * unit;
}

std::string size_text(std::uint64_t bytes) {
  for (const auto& [name, unit] : kSizeUnits)
    if (bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
  return std::to_string(bytes);
}

}  // namespace tw
