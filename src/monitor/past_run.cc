// SPDX-License-Identifier: Apache-2.0
#include "monitor/past_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "monitor/event_log_json.h"

namespace tw {
namespace {

enum class Shown { nothing, begun, ended };

/// Lines that cannot be read tell nothing.
Shown shown_by(const std::string& path, const std::string& run) {
  std::ifstream file(path, std::ios::binary);
  Shown shown = Shown::nothing;
  bool of_this_run = false;
  for (std::string line; std::getline(file, line);) {
    const bool matters =
        line.find("\"start\"") != std::string::npos || line.find("\"commit\"") != std::string::npos;
    if (!matters) continue;
    const auto entry = parse_json_line(line);
    if (!entry) continue;
    const Event& event = entry.value().event;
    if (event.phase == Phase::start) {
      of_this_run = event.digest == run;
      if (of_this_run && shown == Shown::ended) shown = Shown::nothing;
    } else if (event.phase == Phase::commit && of_this_run) {
      const bool last = std::ranges::any_of(event.numbers, [](const auto& n) { return n.first == "last"; });
      shown = last ? Shown::ended : Shown::begun;
    }
  }
  return shown;
}

}  // namespace

std::optional<std::string> log_of_unfinished_run(const std::string& folder, const std::string& run) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("events-") && name.ends_with(".jsonl")) paths.push_back(file.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::optional<std::string> found;
  for (const std::string& path : paths) {
    const Shown shown = shown_by(path, run);
    if (shown == Shown::ended) return std::nullopt;
    if (shown == Shown::begun && !found) found = path;
  }
  return found;
}

}  // namespace tw
