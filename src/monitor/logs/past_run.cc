// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/past_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "monitor/logs/event_log_json.h"
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

void for_each_start_and_commit(const std::string& log, const std::function<void(LogEntry)>& take) {
  for (const std::uint64_t part : log_parts(log)) {
    const std::string path = log_part_path(log, part);
    if (std::error_code error; !std::filesystem::is_regular_file(path, error)) continue;
    std::ifstream file(path, std::ios::binary);
    for (std::string line; std::getline(file, line);) {
      const bool matters =
          line.find("\"start\"") != std::string::npos || line.find("\"commit\"") != std::string::npos;
      if (!matters) continue;
      if (auto entry = parse_json_line(line)) take(std::move(entry).value());
    }
  }
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
