// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/peer_name.h"

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

std::vector<MissingEvents> peers_without_log(const std::vector<std::vector<LogEntry>>& logs) {
  std::map<PeerId, MissingEvents> silent;
  std::set<PeerId> writers;
  for (const std::vector<LogEntry>& log : logs) {
    for (const LogEntry& entry : log) {
      writers.insert(entry.writer);
      const auto* commit = entry.event.as<event::Commit>();
      if (commit == nullptr) continue;
      for (const PeerId peer : commit->peers) {
        MissingEvents& all = silent
                                 .try_emplace(peer, MissingEvents{.peer = peer,
                                                                  .from_unix_nanos = entry.unix_nanos,
                                                                  .to_unix_nanos = entry.unix_nanos,
                                                                  .why = std::string(kNoLog)})
                                 .first->second;
        all.from_unix_nanos = std::min(all.from_unix_nanos, entry.unix_nanos);
        all.to_unix_nanos = std::max(*all.to_unix_nanos, entry.unix_nanos);
      }
    }
  }
  std::vector<MissingEvents> found;
  for (auto& [peer, all] : silent)
    if (!writers.contains(peer)) found.push_back(std::move(all));
  return found;
}

std::string to_string(const MissingEvents& missing) {
  const std::string events = missing.events ? fmt::format("{} events", *missing.events) : "events";
  const std::string from = calendar_time(missing.from_unix_nanos);
  const std::string when = missing.to_unix_nanos
                               ? fmt::format("between {} and {}", from, calendar_time(*missing.to_unix_nanos))
                               : "after " + from;
  return fmt::format("peer {}: {} {} ({})", peer_name(missing.peer), events, when, missing.why);
}

}  // namespace tw::monitor
