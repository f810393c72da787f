// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"

namespace tw::monitor {

namespace {

/// As in monitor::merge.
constexpr Duration kSameClock = std::chrono::seconds(1);

Duration offset_of(const LogEntry& entry) {
  return Duration(entry.unix_nanos) - entry.event.at.time_since_epoch();
}

}  // namespace

Status LogFollower::find_logs() {
  std::error_code error;
  if (std::filesystem::is_regular_file(path_, error)) {
    logs_.try_emplace(path_, Log{EventLogTail(path_), {}});
    return Unit{};
  }
  const std::vector<std::string> paths = logs_in_folder(path_, error);
  if (error) return Error{fmt::format("cannot read the folder {}: {}", path_, cause_text(error))};
  for (const std::string& path : paths) logs_.try_emplace(path, Log{EventLogTail(path), {}});
  return Unit{};
}

void LogFollower::place(Log& log, std::vector<LogEntry>& entries) {
  if (!log.shift) {
    const Duration offset = offset_of(entries[entries.size() / 2]);
    if (!first_offset_) first_offset_ = offset;
    const Duration apart = offset - *first_offset_;
    log.shift = std::chrono::abs(apart) < kSameClock ? Duration{} : apart;
  }
  for (LogEntry& entry : entries) entry.event.at += *log.shift;
}

Result<std::vector<LogEntry>> LogFollower::poll() {
  TW_TRY(find_logs());
  for (auto& [path, log] : logs_) {
    TW_TRY(auto polled, log.tail.poll());
    std::ranges::move(runs_.note(path, std::move(polled)), std::back_inserter(read_));
  }
  std::vector<LogEntry> all;
  for (NewestRun::Stretch& stretch : std::exchange(read_, {})) {
    Log& log = logs_.at(stretch.log);
    std::vector<LogEntry> entries = runs_.kept(std::move(stretch));
    if (entries.empty()) continue;
    place(log, entries);
    std::move(entries.begin(), entries.end(), std::back_inserter(all));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LogEntry& a, const LogEntry& b) { return a.event.at < b.event.at; });
  return all;
}

}  // namespace tw::monitor
