// SPDX-License-Identifier: Apache-2.0
#include "train/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tw {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() +
                               1);  // distances of the part of a seen so far to every beginning of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (c == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

bool resembles(std::string_view written, std::string_view known) {
  return edit_distance(written, known) <= std::max<std::size_t>(1, known.size() / 3);
}

}  // namespace tw
