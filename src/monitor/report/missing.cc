// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/missing.h"

#include <fmt/format.h>

#include "base/peer_name.h"
#include "base/text/printable.h"

namespace tw::monitor {
namespace {

/// The largest number of events that a line can speak of: whole numbers beyond it are rounded in JSON.
constexpr double kMost = 0x1p53;

std::optional<std::uint64_t> whole_number_in(const world::Event& event, std::string_view name) {
  const auto number = number_in(event, name);
  if (!number || !(*number >= 0 && *number <= kMost)) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

}  // namespace

std::vector<MissingEvents> missing_events(const std::vector<LogEntry>& log) {
  std::vector<MissingEvents> gaps;
  std::uint64_t seen = 0;
  for (std::size_t at = 0; at < log.size(); ++at, ++seen) {
    const LogEntry& entry = log[at];
    if (entry.event.phase != world::Phase::log) continue;
    MissingEvents gap{.peer = entry.writer,
                      .events = whole_number_in(entry.event, "missing"),
                      .from_unix_nanos = entry.unix_nanos,
                      .to_unix_nanos = entry.unix_nanos,
                      .why = entry.event.why};
    if (gap.events) {
      const double seconds = number_in(entry.event, "seconds").value_or(0);
      if (seconds > 0 && seconds < 1e9) gap.from_unix_nanos -= from_seconds(seconds).count();
      gaps.push_back(std::move(gap));
      continue;
    }
    const auto logged = whole_number_in(entry.event, "logged");
    if (!logged) continue;
    if (*logged > seen) {
      gap.events = *logged - seen;
      gap.why = "files of its log that were removed for newer ones, or are not in this folder";
      if (at > 0) gap.from_unix_nanos = log[at - 1].unix_nanos;
      gaps.push_back(std::move(gap));
    }
    seen = *logged;
  }
  return gaps;
}

std::string to_string(const MissingEvents& missing) {
  const std::string events = missing.events ? fmt::format("{} events", *missing.events) : "events";
  return fmt::format("peer {}: {} between {} and {} ({})", peer_name(missing.peer), events,
                     calendar_time(missing.from_unix_nanos), calendar_time(missing.to_unix_nanos),
                     printable_line(missing.why));
}

}  // namespace tw::monitor
