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

/// Evidence of one log, with any parts, and the last of its rounds. Unreadable lines are ignored.
std::pair<Shown, Round> shown_by(const std::string& log, const std::string& run) {
  Shown shown = Shown::nothing;
  Round rounds = 0;
  bool of_this_run = false;
  const auto take = [&](const world::Event& event) {
    if (event.phase == world::Phase::start) {
      of_this_run = event.digest == run;
      if (of_this_run && shown == Shown::ended) shown = Shown::nothing;
    } else if (event.phase == world::Phase::commit && of_this_run) {
      const bool last = std::ranges::any_of(event.numbers, [](const auto& n) { return n.first == "last"; });
      shown = last ? Shown::ended : Shown::begun;
      rounds = event.round;
    }
  };
  for (const std::uint64_t part : log_parts(log)) {
    const std::string path = log_part_path(log, part);
    if (std::error_code error; !std::filesystem::is_regular_file(path, error)) continue;
    std::ifstream file(path, std::ios::binary);
    for (std::string line; std::getline(file, line);) {
      const bool matters =
          line.find("\"start\"") != std::string::npos || line.find("\"commit\"") != std::string::npos;
      if (!matters) continue;
      if (const auto entry = parse_json_line(line)) take(entry.value().event);
    }
  }
  return {shown, rounds};
}

}  // namespace

std::optional<UnfinishedRun> unfinished_run(const std::string& folder, const std::string& run) {
  std::error_code error;
  const std::vector<std::string> paths = logs_in_folder(folder, error);
  std::optional<UnfinishedRun> found;
  for (const std::string& path : paths) {
    const auto [shown, rounds] = shown_by(path, run);
    if (shown == Shown::ended) return std::nullopt;
    if (shown == Shown::nothing) continue;
    if (!found) found.emplace(UnfinishedRun{path, 0});
    found->rounds = std::max(found->rounds, rounds);
  }
  return found;
}

}  // namespace tw::monitor
