// SPDX-License-Identifier: Apache-2.0
#include "base/range_text.h"

#include <algorithm>

#include "base/text/number.h"

namespace tw {

std::optional<RangeSet> ranges_in(std::string_view text) {
  RangeSet ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto first = parse_number<std::uint64_t>(part.substr(0, dash));
    const auto last = dash == part.size() ? first : parse_number<std::uint64_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    ranges.add({*first, *last - *first + 1});
    at = end + 1;
  }
  return ranges;
}

}  // namespace tw
