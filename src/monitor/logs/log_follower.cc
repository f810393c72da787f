// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"
#include "monitor/logs/log_file.h"

namespace tw::monitor {
namespace {

constexpr Phases kNameRuns = phases({world::Phase::start});

/// Further parts of a log say how many lines were before them: without those that were left out.
void lower_count(std::uint64_t left_out, LogEntry& entry) {
  auto* log = std::get_if<event::Log>(&entry.event.fact);
  if (log != nullptr && log->logged) log->logged = *log->logged - std::min(*log->logged, left_out);
}

}  // namespace

Result<LogFollower> LogFollower::of_whole_logs(const std::string& folder_or_log) {
  TW_TRY(const auto paths, find_event_logs(folder_or_log));
  std::error_code error;
  const bool is_one = std::filesystem::is_regular_file(folder_or_log, error);
  LogFollower logs(is_one ? folder_or_log : std::filesystem::path(paths.front()).parent_path().string());
  TW_TRY(logs.look());
  return logs;
}

Status LogFollower::find_logs() {
  std::error_code error;
  std::map<std::string, std::vector<std::uint64_t>> found;
  if (std::filesystem::is_regular_file(path_, error))
    found[path_] = log_parts(path_);
  else
    found = log_parts_in_folder(path_, error);
  if (error) return Error{fmt::format("cannot read the folder {}: {}", path_, cause_text(error))};
  for (auto& [path, log] : logs_) log.parts.clear();
  for (auto& [path, parts] : found) logs_.try_emplace(path, path).first->second.parts = std::move(parts);
  return Unit{};
}

Status LogFollower::look() {
  if (broken_) TW_TRY(broken_->next());
  broken_.reset();
  TW_TRY(find_logs());
  for (auto& [path, log] : logs_) TW_TRY(look_at(path, log));
  return Unit{};
}

Status LogFollower::look_at(const std::string& path, Log& log) {
  while (true) {
    const std::uint64_t before = log.looked.lines();
    const auto next = log.looked.next(kNameRuns, &log.parts);
    const bool has_entry = next && next.value();
    if (log.looked.lines() < before + (has_entry ? 1 : 0)) {  // it was begun anew
      log.given = {EventLogTail(path)};
      log.clock = {};
    }
    if (!next) return next.error();
    if (!has_entry) return Unit{};
    log.clock.note(*next.value(), runs_.note(path, *next.value()), log.looked.place());
  }
}

std::function<bool(const std::string& run)> LogFollower::goes_along() const {
  return [this](const std::string& run) { return runs_.goes_along(run); };
}

Result<std::optional<LogEntry>> LogFollower::next_of(Reading& reading, const Phases& wanted) const {
  Given& given = reading.given;
  while (given.tail.place() < reading.end) {
    auto next = given.tail.next(wanted);
    given.is_broken = !next;
    if (!next) return next;
    std::optional<LogEntry>& entry = next.value();
    if (!entry) break;
    if (const auto* start = entry->event.as<event::Start>()) given.run = start->digest;
    if (runs_.keeps(given.run, *entry)) {
      lower_count(given.left_out, *entry);
      entry->event.at += shift_at(reading.shifts, given.tail.place());
      return next;
    }
    ++given.left_out;
  }
  return std::optional<LogEntry>();
}

Status LogFollower::give(std::vector<Reading>& readings, const Phases& wanted, const Take& take) const {
  return in_order(
      readings.size(), [&](std::size_t i) { return next_of(readings[i], wanted | kNameRuns); },
      [&](const LogEntry& entry, std::size_t i) { take(entry, readings[i].log); });
}

/// The writer of a log may have removed parts of it since, or begun it anew: then two passes would not give
/// the same entries.
Status LogFollower::each(const Phases& wanted, const Take& take) const {
  std::optional<Duration> first = first_offset_;
  std::vector<Reading> readings;
  for (const auto& [path, log] : logs_)
    readings.push_back({.log = readings.size(),
                        .given = {EventLogTail(path)},
                        .end = log.looked.place(),
                        .shifts = log.clock.shifts(first, goes_along())});
  TW_TRY(give(readings, wanted, take));
  auto reading = readings.begin();
  for (const auto& [path, log] : logs_)
    if (!(reading++)->given.tail.stands_as(log.looked))
      return Error{fmt::format("{} changed while it was read; try again", path)};
  return Unit{};
}

Status LogFollower::each_new(const Take& take) {
  std::optional<Duration> first = first_offset_;
  std::vector<Reading> readings;
  std::vector<Log*> logs;
  for (auto& [path, log] : logs_) {
    LogClock::Shifts shifts = log.clock.shifts(first, goes_along());
    if (log.given.tail.place() < log.looked.place())
      readings.push_back({logs.size(), log.given, log.looked.place(), std::move(shifts)});
    logs.push_back(&log);
  }
  const Status given = give(readings, kAllPhases, take);
  for (const Reading& reading : readings)
    if (reading.given.is_broken) broken_ = reading.given.tail;
  if (!given) return given;
  first_offset_ = first;
  for (Reading& reading : readings) {
    Log& log = *logs[reading.log];
    log.given = std::move(reading.given);
    log.clock.fix(reading.shifts);
  }
  return Unit{};
}

void LogFollower::rewind() {
  first_offset_.reset();
  for (auto& [path, log] : logs_) {
    log.given = {EventLogTail(path)};
    log.clock.loosen();
  }
}

}  // namespace tw::monitor
