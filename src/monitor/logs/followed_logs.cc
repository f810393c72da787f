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
  if (take_writers(fresh)) {
    // A journal gets the facts of its peers only at its beginning, so all logs are read again.
    journal_ = Journal(facts_ ? facts_(peers_) : JournalOptions{});
    follower_ = LogFollower(folder_);
    return poll();
  }
  for (const LogEntry& entry : fresh) journal_.take(entry);
  return Unit{};
}

/// True: there is a new one.
bool FollowedLogs::take_writers(const std::vector<LogEntry>& entries) {
  const std::size_t known = peers_.size();
  for (const LogEntry& entry : entries)
    if (entry.writer != PeerId{} && std::ranges::find(peers_, entry.writer) == peers_.end())
      peers_.push_back(entry.writer);
  return peers_.size() > known;
}

}  // namespace tw::monitor
