// SPDX-License-Identifier: Apache-2.0
#include "plan/model/availability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/result.h"
#include "base/text/csv.h"

namespace tw::plan {

int AvailabilityTrace::most() const {
  int most = 0;
  for (const Change& change : changes) most = std::max(most, change.available);
  return most;
}

Result<std::vector<AvailabilityTrace>> read_availability(const std::string& file, std::string_view text) {
  TW_TRY(const CsvTable table, CsvTable::parse(file, text, {"t_seconds", "available"}));
  std::vector<AvailabilityTrace> traces;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const std::string id = table.has("trace_id") ? row.word("trace_id") : file;
    const AvailabilityTrace::Change change{row.number("t_seconds", {.least = 0, .most = 1e12}),
                                           row.count("available"),
                                           row.number_or("spot_usd_h", 0, {.least = 0, .most = 1e6})};
    auto trace = std::ranges::find(traces, id, &AvailabilityTrace::id);
    if (trace == traces.end()) trace = traces.insert(trace, {.id = id, .changes = {}});
    std::vector<AvailabilityTrace::Change>& changes = trace->changes;
    if (!changes.empty() && change.at_s <= changes.back().at_s)
      row.complain("t_seconds", fmt::format("a time after {}, that of the row before", changes.back().at_s));
    TW_TRY(row.status());
    changes.push_back(change);
  }
  if (traces.empty()) return Error{file + ": no rows; expected t_seconds,available and what follows"};
  return traces;
}

std::vector<int> sample_availability(const AvailabilityTrace& trace, double from_s, double tick_s,
                                     int ticks) {
  std::vector<int> least(static_cast<std::size_t>(ticks), 0);
  if (trace.changes.size() < 2) return least;
  const double begin_s = trace.changes.front().at_s + from_s;
  const double end_s = trace.changes.back().at_s;
  std::size_t at = 0;
  for (int tick = 0; tick < ticks; ++tick) {
    const double tick_begin_s = begin_s + tick * tick_s;
    const double tick_end_s = tick_begin_s + tick_s;
    if (tick_end_s > end_s) break;
    while (at + 1 < trace.changes.size() && trace.changes[at + 1].at_s <= tick_begin_s) ++at;
    int available = trace.changes[at].available;
    for (std::size_t next = at + 1; next < trace.changes.size() && trace.changes[next].at_s < tick_end_s;
         ++next)
      available = std::min(available, trace.changes[next].available);
    least[static_cast<std::size_t>(tick)] = available;
  }
  return least;
}

std::vector<double> sample_prices(const AvailabilityTrace& trace, double from_s, double tick_s, int ticks,
                                  double otherwise) {
  std::vector<double> prices(static_cast<std::size_t>(ticks), otherwise);
  if (trace.changes.empty()) return prices;
  std::size_t at = 0;
  for (int tick = 0; tick < ticks; ++tick) {
    const double at_s = trace.changes.front().at_s + from_s + tick * tick_s;
    while (at + 1 < trace.changes.size() && trace.changes[at + 1].at_s <= at_s) ++at;
    if (trace.changes[at].spot_usd_h > 0)
      prices[static_cast<std::size_t>(tick)] = trace.changes[at].spot_usd_h;
  }
  return prices;
}

}  // namespace tw::plan
