// SPDX-License-Identifier: Apache-2.0
#include "base/text/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tw {
namespace {

bool is_same_letter(char a, char b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return lower(a) == lower(b);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Distances of the first i characters of a to every beginning of b, and the two previous rows.
  std::vector<std::size_t> row(b.size() + 1), before, before_that;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_that = std::exchange(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = before[j - 1] + (is_same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) && is_same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_that[j - 2] + 1);
    }
  }
  return row.back();
}

bool resembles(std::string_view written, std::string_view known) {
  return edit_distance(written, known) <= std::max<std::size_t>(1, known.size() / 3);
}

std::string nearest_name(std::string_view written, std::span<const std::string> known) {
  // Among equally near names, one of the same length wins: "modle" is "model" rather than "mode".
  const auto distance = [&](std::string_view name) {
    const std::size_t longer = std::max(name.size(), written.size());
    return std::pair(edit_distance(written, name), 2 * longer - name.size() - written.size());
  };
  const auto nearest =
      std::min_element(known.begin(), known.end(),
                       [&](std::string_view a, std::string_view b) { return distance(a) < distance(b); });
  return nearest != known.end() && resembles(written, *nearest) ? *nearest : "";
}

}  // namespace tw
