// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/missing.h"

#include <fmt/format.h>

#include "base/peer_name.h"
#include "base/text/printable.h"

namespace tw::monitor {

std::vector<MissingEvents> missing_events(const std::vector<LogEntry>& log) {
  std::vector<MissingEvents> gaps;
  std::uint64_t seen = 0;
  for (std::size_t at = 0; at < log.size(); ++at, ++seen) {
    const LogEntry& entry = log[at];
    const auto* told = entry.event.as<event::Log>();
    if (told == nullptr) continue;
    MissingEvents gap{.peer = entry.writer,
                      .events = told->missing,
                      .from_unix_nanos = entry.unix_nanos,
                      .to_unix_nanos = entry.unix_nanos,
                      .why = entry.event.why};
    if (gap.events) {
      const double seconds = told->seconds.value_or(0);
      if (seconds > 0 && seconds < 1e9) gap.from_unix_nanos -= from_seconds(seconds).count();
      gaps.push_back(std::move(gap));
      continue;
    }
    if (!told->logged) continue;
    if (*told->logged > seen) {
      gap.events = *told->logged - seen;
      gap.why = "files of its log that were removed for newer ones, or are not in this folder";
      if (at > 0) gap.from_unix_nanos = log[at - 1].unix_nanos;
      gaps.push_back(std::move(gap));
    }
    seen = *told->logged;
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
