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
    run_ = follower_.run();
    peers_ = peers;
    options_ = facts_ ? facts_(peers) : JournalOptions{};
    history_.reset();
    forks_ = 0;
    begin();
  }
  is_up_to_date_ = false;  // after an error the next call begins again, too
  TW_TRY(take_new());
  is_up_to_date_ = true;
  return Unit{};
}

void FollowedLogs::begin() {
  follower_.rewind();
  journal_ = Journal(options_);
}

Status FollowedLogs::take_new() {
  bool turns = false;
  TW_TRY(follower_.each_new([&](const LogEntry& entry, std::size_t) {
    turns = turns || may_turn(entry);
    journal_.take(entry, history_ && history_->drops_next(entry));
  }));
  return turns || journal_.rounds().forks() != forks_ ? take_whole() : Unit{};
}

/// Which of two histories the run holds shows only in all entries.
Status FollowedLogs::take_whole() {
  begin();
  TW_TRY(history_, HeldHistory::of(follower_));
  std::size_t next = 0;
  TW_TRY(follower_.each_new(
      [&](const LogEntry& entry, std::size_t) { journal_.take(entry, history_->drops(next++)); }));
  forks_ = journal_.rounds().forks();
  return Unit{};
}

/// A peer takes another history, or one beside the run comes to its end.
bool FollowedLogs::may_turn(const LogEntry& entry) const {
  if (!history_ || !history_->is_parted()) return false;
  const bool beside = history_->is_beside(entry.writer);
  if (const auto* commit = entry.event.as<event::Commit>()) return beside && commit->last;
  const auto* restored = entry.event.as<event::Restore>();
  if (restored == nullptr || restored->record.empty()) return false;
  return beside || !journal_.rounds().holds(entry.event.round, restored->record);
}

}  // namespace tw::monitor
