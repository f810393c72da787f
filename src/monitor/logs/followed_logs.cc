// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/followed_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/result.h"
#include "monitor/logs/log_file.h"

namespace tw::monitor {
namespace {

bool holds_logs(const std::string& folder) {
  std::error_code error;
  return !logs_in_folder(folder, error).empty();
}

std::set<PeerId> writers_of(const std::vector<LogEntry>& entries) {
  std::set<PeerId> writers;
  for (const LogEntry& entry : entries)
    if (entry.writer != PeerId{}) writers.insert(entry.writer);
  return writers;
}

}  // namespace

Result<FollowedLogs> FollowedLogs::open(const std::string& folder, Facts facts) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder, error)) return FollowedLogs(folder, std::move(facts));
  if (!std::filesystem::is_directory(folder, error))
    return Error{
        fmt::format("{}: no such folder; expected one with event logs, such as --out of tw run", folder)};
  const std::string inner = folder + "/logs";
  const bool in_inner = !holds_logs(folder) && std::filesystem::is_directory(inner, error);
  return FollowedLogs(in_inner ? inner : folder, std::move(facts));
}

Status FollowedLogs::poll() {
  TW_TRY(auto fresh, follower_.poll());
  if (begins_again(fresh)) {
    follower_ = LogFollower(folder_);
    peers_.clear();  // after an error the next call begins again, too
    TW_TRY(fresh, follower_.poll());
    run_ = follower_.run();
    peers_ = writers_of(fresh);
    journal_ = Journal(facts_ ? facts_({peers_.begin(), peers_.end()}) : JournalOptions{});
  }
  for (const LogEntry& entry : fresh) journal_.take(entry);
  return Unit{};
}

/// There is another run, or a new peer: a journal gets the facts of its peers only at its beginning.
bool FollowedLogs::begins_again(const std::vector<LogEntry>& entries) const {
  return follower_.run() != run_ || !std::ranges::includes(peers_, writers_of(entries));
}

}  // namespace tw::monitor
