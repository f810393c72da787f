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
  TW_TRY(follower_.look());
  const std::vector<PeerId> peers = follower_.writers();
  // There is another run, or a new peer: a journal gets the facts of its peers only at its beginning.
  if (!is_up_to_date_ || follower_.run() != run_ || peers != peers_) {
    follower_.rewind();
    run_ = follower_.run();
    peers_ = peers;
    journal_ = Journal(facts_ ? facts_(peers) : JournalOptions{});
  }
  is_up_to_date_ = false;  // after an error the next call begins again, too
  TW_TRY(follower_.each_new([&](const LogEntry& entry, std::size_t) { journal_.take(entry); }));
  is_up_to_date_ = true;
  return Unit{};
}

}  // namespace tw::monitor
