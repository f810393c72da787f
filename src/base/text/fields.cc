// SPDX-License-Identifier: Apache-2.0
#include "base/text/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/text/nearest_name.h"

namespace tw {
namespace {

std::string bounds_text(const NumberBounds& bounds) {
  const bool closed = !bounds.above_low && !bounds.below_high;
  const std::string low = fmt::format(" {} {:.15g}", bounds.above_low ? "above" : "from", bounds.low);
  const char* const to = closed ? "to" : bounds.below_high ? "and below" : "and at most";
  return bounds.high == kInfinity ? low : fmt::format("{} {} {:.15g}", low, to, bounds.high);
}

std::string meant_text(const std::string& meant) {
  return meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant);
}

}  // namespace

std::string number_text(const NumberBounds& bounds) {
  const bool any = bounds.low == -kInfinity && bounds.high == kInfinity;
  return any ? "a number" : "a number" + bounds_text(bounds);
}

std::string whole_number_text(const NumberBounds& bounds) { return "a whole number" + bounds_text(bounds); }

std::optional<bool> truth_in(std::string_view text) {
  constexpr std::array<std::string_view, 4> kTrue = {"true", "1", "yes", "on"};
  constexpr std::array<std::string_view, 4> kFalse = {"false", "0", "no", "off"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return std::nullopt;
}

std::string meant_truth(std::string_view written) {
  constexpr std::array<std::string_view, 2> kWords = {"true", "false"};
  return did_you_mean(written, kWords);
}

std::string unexpected(const std::string& expected, const std::string& found) {
  constexpr std::size_t kMost = 200;
  const std::string_view end = found.size() > kMost ? "..." : "";
  return fmt::format("expected {}, found {}", expected,
                     found.empty() ? "nothing" : fmt::format("\"{}{}\"", found.substr(0, kMost), end));
}

std::string did_you_mean(std::string_view written, std::span<const std::string> known) {
  return meant_text(nearest_name(written, known));
}

std::string did_you_mean(std::string_view written, std::span<const std::string_view> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  return did_you_mean(written, names);
}

std::string unknown_key(std::string_view written, const std::vector<KnownKey>& known) {
  std::vector<std::string> here, nearest;
  std::pair<std::size_t, std::size_t> least(std::numeric_limits<std::size_t>::max(), 0);
  for (const KnownKey& one : known) {
    if (one.here && std::ranges::find(here, one.key) == here.end()) here.push_back(one.key);
    if (!resembles(written, one.name)) continue;
    const std::size_t longer = std::max(one.name.size(), written.size());
    // Among equally near names, one of the same length wins, as in nearest_name().
    const std::pair distance(edit_distance(written, one.name) + (one.here ? 0 : 1),
                             2 * longer - one.name.size() - written.size());
    if (distance < least) nearest.clear();
    least = std::min(least, distance);
    if (distance == least && std::ranges::find(nearest, one.key) == nearest.end()) nearest.push_back(one.key);
  }
  if (nearest.empty()) return fmt::format("unknown key; known here: {}", fmt::join(here, ", "));
  return fmt::format("unknown key; did you mean \"{}\"?", fmt::join(nearest, "\" or \""));
}

std::string reference_of(const std::vector<FieldRow>& rows) {
  std::string table = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const FieldRow& row : rows)
    table += fmt::format("| `{}` | {} | {} | {} |\n", row.key, row.expected,
                         row.written.empty() ? "" : fmt::format("`{}`", row.written), row.meaning);
  return table;
}

}  // namespace tw
