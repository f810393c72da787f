// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/event_log_tail.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text/text_file.h"
#include "monitor/logs/log_file.h"

namespace tw::monitor {
namespace {

/// Logs are read in pieces of so many bytes, or larger ones for a longer line.
constexpr std::uint64_t kLogPieceBytes = 64ULL << 10;
/// Limit for a line; a file with a longer one is no event log.
constexpr std::uint64_t kMostLineBytes = 64ULL << 20;
/// So many first bytes tell one log from another: the first line has a time.
constexpr std::uint64_t kBeginBytes = 256;

bool file_begins_with(const std::string& path, const std::string& text) {
  if (text.empty()) return true;
  std::string begin(text.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return !file.read(begin.data(), std::ssize(begin)) || begin == text;  // an error of the file is another's
}

}  // namespace

Status EventLogTail::each_new(const Phases& wanted, const std::function<void(LogEntry entry)>& take) {
  while (true) {
    TW_TRY(auto entry, next(wanted));
    if (!entry) return Unit{};
    take(std::move(*entry));
  }
}

Result<std::vector<LogEntry>> EventLogTail::poll() {
  TW_TRY(each_new(kAllPhases, [this](LogEntry entry) { taken_.push_back(std::move(entry)); }));
  return std::exchange(taken_, {});
}

Result<std::optional<LogEntry>> EventLogTail::next(const Phases& wanted,
                                                   const std::vector<std::uint64_t>* parts) {
  while (true) {
    if (const std::size_t end = text_.find('\n', at_); end == std::string::npos) {
      TW_TRY(const bool more, read_on(parts));
      if (!more) return std::optional<LogEntry>();
    } else {
      TW_TRY(auto entry, take_line(end, wanted));
      if (entry) return entry;
    }
  }
}

/// Nothing: the line was skipped.
Result<std::optional<LogEntry>> EventLogTail::take_line(std::size_t end, const Phases& wanted) {
  const std::size_t length = end + 1 - at_;
  auto entry = parse_json_line(text_.substr(at_, length - 1), wanted);
  if (!entry && broken_ == BrokenLine::error) {
    text_.clear();  // it may be mended
    at_ = 0;
    return Error{fmt::format("{}:{}: {}; move this log elsewhere, and the others can be read",
                             log_part_path(path_, part_), lines_ + 1, entry.error().message)};
  }
  if (begin_.size() == bytes_ && bytes_ < kBeginBytes)
    begin_ += text_.substr(at_, std::min<std::size_t>(length, kBeginBytes - bytes_));
  at_ += length;
  bytes_ += length;
  ++lines_;
  return entry ? std::optional(std::move(entry).value()) : std::nullopt;
}

/// Another file has this name, or is shorter than what was taken; or the part is gone, and later ones with
/// it. A copy of a log may be replaced by a longer one, which begins as the former.
bool EventLogTail::was_begun_anew(const std::vector<std::uint64_t>* parts) const {
  if (lines() == 0) return false;
  const std::string path = log_part_path(path_, part_);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error) return size < bytes_ || !file_begins_with(path, begin_);
  if (std::filesystem::exists(path, error)) return false;  // what is no regular file: a pipe would block
  const std::vector<std::uint64_t> there = parts != nullptr ? *parts : log_parts(path_);
  return !there.empty() && there.back() < part_;
}

void EventLogTail::begin_at(std::uint64_t part) {
  lines_before_ = part == 1 ? 0 : lines();
  part_ = part;
  begin_.clear();
  bytes_ = lines_ = 0;
}

/// The writer may have removed parts in between.
std::vector<std::uint64_t> EventLogTail::further_parts(const std::vector<std::uint64_t>* parts) const {
  std::error_code error;
  if (parts == nullptr && std::filesystem::exists(log_part_path(path_, part_ + 1), error)) return {part_ + 1};
  const std::vector<std::uint64_t> there = parts != nullptr ? *parts : log_parts(path_);
  return {std::ranges::upper_bound(there, part_), there.end()};
}

/// To a text with a whole line; false: there is none. A further part is entered with its first whole line.
Result<bool> EventLogTail::read_on(const std::vector<std::uint64_t>* parts) {
  if (was_begun_anew(parts)) begin_at(1);
  TW_TRY(const bool has_line, read_piece(part_, bytes_));
  if (has_line) return true;
  const std::vector<std::uint64_t> further = further_parts(parts);
  if (further.empty()) return false;
  // Once there is a further part, nothing is added to this one.
  TW_TRY(const bool was_added, read_piece(part_, bytes_));
  if (was_added) return true;
  for (const std::uint64_t part : further) {
    TW_TRY(const bool begins, read_piece(part, 0));
    if (!begins) continue;
    begin_at(part);
    return true;
  }
  return false;
}

/// The file is opened each time: see was_begun_anew. A line that was not complete is read again, because its
/// writer may have cut it off.
Result<bool> EventLogTail::read_piece(std::uint64_t part, std::uint64_t from) {
  const std::string path = log_part_path(path_, part);
  std::error_code error;
  text_.clear();
  at_ = 0;
  if (!std::filesystem::exists(path, error)) return false;
  for (std::uint64_t room = kLogPieceBytes; room <= kMostLineBytes; room *= 4) {
    TW_TRY(text_, read_text_from(path, from, room));
    const bool has_line = text_.find('\n') != std::string::npos;
    if (has_line || text_.size() < room) return has_line;
  }
  return Error{fmt::format("{}:{}: a line of more than {} bytes; expected an event log", path,
                           part == part_ ? lines_ + 1 : 1, kMostLineBytes)};
}

}  // namespace tw::monitor
