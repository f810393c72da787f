// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tw::plan {

/// Number of available spot machines of a zone over time, and their price where it is known.
struct AvailabilityTrace {
  struct Change {
    double at_s = 0;
    int available = 0;
    double spot_usd_h = 0;  ///< 0: not given

    bool operator==(const Change&) const = default;
  };

  std::string id;
  std::vector<Change> changes;  ///< rising in time; each holds until the next, the last marks the end

  double length_s() const { return changes.empty() ? 0 : changes.back().at_s - changes.front().at_s; }

  int most() const;

  bool operator==(const AvailabilityTrace&) const = default;
};

/// CSV with the columns trace_id,t_seconds,available, and spot_usd_h if prices move, no others; the rows of a
/// trace in the order of time. Without trace_id the file is one trace, named like it. Errors name file, line
/// and column.
Result<std::vector<AvailabilityTrace>> read_availability(const std::string& file, std::string_view text);

/// The least number in each of `ticks` ticks, starting `from_s` after the trace's beginning; 0 after its end.
std::vector<int> sample_availability(const AvailabilityTrace& trace, double from_s, double tick_s, int ticks);

/// The price at the beginning of each of these ticks, `otherwise` where the trace has none.
std::vector<double> sample_prices(const AvailabilityTrace& trace, double from_s, double tick_s, int ticks,
                                  double otherwise);

}  // namespace tw::plan
