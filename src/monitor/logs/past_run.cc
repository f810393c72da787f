// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/past_run.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "monitor/logs/event_log_tail.h"
#include "monitor/logs/log_file.h"

namespace tw::monitor {
namespace {

enum class Shown { nothing, begun, ended };

struct Evidence {
  Shown shown = Shown::nothing;
  Round rounds = 0;             ///< the last one
  std::int64_t unix_nanos = 0;  ///< of its commit
};

/// What one log shows.
Evidence shown_by(const std::string& log, const std::string& run) {
  Evidence found;
  bool of_this_run = false;
  for_each_start_and_commit(log, [&](const LogEntry& entry) {
    const world::Event& event = entry.event;
    if (const auto* start = event.as<event::Start>()) {
      of_this_run = start->digest == run;
      if (of_this_run && found.shown == Shown::ended) found.shown = Shown::nothing;
    }
    if (const auto* commit = event.as<event::Commit>(); commit && of_this_run)
      found = {commit->last ? Shown::ended : Shown::begun, event.round, entry.unix_nanos};
  });
  return found;
}

}  // namespace

void for_each_start_and_commit(const std::string& log, const std::function<void(const LogEntry&)>& take) {
  constexpr Phases kWanted = phases({world::Phase::start, world::Phase::commit});
  (void)EventLogTail(log, BrokenLine::skipped).each_new(kWanted, [&](const LogEntry& entry) {
    if (kWanted.test(static_cast<std::size_t>(entry.event.phase()))) take(entry);
  });
}

std::optional<UnfinishedRun> unfinished_run(const std::string& folder, const std::string& run) {
  std::error_code error;
  const std::vector<std::string> paths = logs_in_folder(folder, error);
  std::vector<std::pair<std::string, Evidence>> begun;
  std::int64_t ended_unix_nanos = 0;
  for (const std::string& path : paths) {
    const Evidence evidence = shown_by(path, run);
    if (evidence.shown == Shown::begun) begun.emplace_back(path, evidence);
    if (evidence.shown == Shown::ended) ended_unix_nanos = std::max(ended_unix_nanos, evidence.unix_nanos);
  }
  std::optional<UnfinishedRun> found;
  for (const auto& [path, evidence] : begun) {
    // What came before the end of a run is of that run: its peer was lost.
    if (ended_unix_nanos != 0 && evidence.unix_nanos <= ended_unix_nanos) continue;
    if (!found) found.emplace(UnfinishedRun{path, 0});
    found->rounds = std::max(found->rounds, evidence.rounds);
  }
  return found;
}

}  // namespace tw::monitor
