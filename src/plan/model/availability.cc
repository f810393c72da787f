// SPDX-License-Identifier: Apache-2.0
#include "plan/model/availability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/result.h"
#include "base/text/csv.h"

namespace tw::plan {

int AvailabilityTrace::most() const {
  int most = 0;
  for (const Change& change : changes) most = std::max(most, change.available);
  return most;
}

namespace {

constexpr const char* kPriceExpected =
    "a price above 0 where machines are available, unless the row is the last of its trace; or no such "
    "column";

/// 0: an empty cell, or no such column.
double price_in(CsvRow& row, const CsvTable& table) {
  constexpr CsvRange kUsd{.least = 0, .most = 1e6};
  if (!table.has("spot_usd_h") || row.empty("spot_usd_h")) return 0;
  const double usd_h = row.number("spot_usd_h", kUsd);
  if (usd_h == 0) row.complain("spot_usd_h", kPriceExpected);
  return usd_h;
}

/// What is wrong when another row of the trace follows this one.
Status unless_last(CsvRow row, const CsvTable& table, int available) {
  if (table.has("spot_usd_h") && row.empty("spot_usd_h") && available > 0)
    row.complain("spot_usd_h", kPriceExpected);
  return row.status();
}

}  // namespace

Result<std::vector<AvailabilityTrace>> read_availability(const std::string& file, std::string_view text) {
  static const std::vector<std::string> columns = {"trace_id", "t_seconds", "available", "spot_usd_h"};
  TW_TRY(const CsvTable table, CsvTable::parse(file, text, {"t_seconds", "available"}));
  TW_TRY(table.knows_only(columns));
  std::vector<AvailabilityTrace> traces;
  std::map<std::string, Status> if_more_follows;  // by trace: of its row before
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const std::string id = table.has("trace_id") ? row.word("trace_id") : file;
    AvailabilityTrace::Change change{row.number("t_seconds", {.least = 0, .most = 1e12}),
                                     row.count("available"), price_in(row, table)};
    auto trace = std::ranges::find(traces, id, &AvailabilityTrace::id);
    if (trace == traces.end()) trace = traces.insert(trace, {.id = id, .changes = {}});
    std::vector<AvailabilityTrace::Change>& changes = trace->changes;
    if (!changes.empty() && change.at_s <= changes.back().at_s)
      row.complain("t_seconds", fmt::format("a time after {}, that of the row before", changes.back().at_s));
    TW_TRY(row.status());
    const auto before = if_more_follows.find(id);
    if (before != if_more_follows.end()) TW_TRY(before->second);
    if_more_follows.insert_or_assign(id, unless_last(row, table, change.available));
    if (change.spot_usd_h == 0 && !changes.empty()) change.spot_usd_h = changes.back().spot_usd_h;
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
