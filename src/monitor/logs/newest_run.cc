// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/newest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/text/printable.h"
#include "monitor/logs/log_file.h"
#include "monitor/logs/past_run.h"

namespace tw::monitor {
namespace {

constexpr std::size_t kMostNames = 8;

/// Further parts of a log say how many lines were before them: without those that were left out.
void lower_count(std::uint64_t left_out, std::vector<LogEntry>& entries) {
  for (LogEntry& entry : entries) {
    auto* log = std::get_if<event::Log>(&entry.event.fact);
    if (log != nullptr && log->logged) log->logged = *log->logged - std::min(*log->logged, left_out);
  }
}

}  // namespace

std::string short_run(const std::string& run) {
  constexpr std::size_t kDigits = 8;
  return printable_line(run.substr(0, kDigits));
}

std::vector<NewestRun::Stretch> NewestRun::note(const std::string& log, std::vector<LogEntry> entries) {
  Place& place = places_[log];
  std::vector<Stretch> stretches;
  for (LogEntry& entry : entries) {
    if (const auto* start = entry.event.as<event::Start>()) {
      place = {.run = start->digest, .started_unix_nanos = entry.unix_nanos};
      if (!place.run.empty()) runs_of_[entry.writer].insert(place.run);
    }
    const bool is_round = entry.event.as<event::Accumulate>() || entry.event.as<event::Commit>();
    if (is_round && !place.begun && !place.run.empty()) begin(log, place);
    if (stretches.empty() || stretches.back().run != place.run) stretches.push_back({log, place.run, {}});
    stretches.back().entries.push_back(std::move(entry));
  }
  return stretches;
}

void NewestRun::begin(const std::string& log, Place& place) {
  place.begun = true;
  Run& run = runs_[place.run];
  run.started_unix_nanos = std::max(run.started_unix_nanos, place.started_unix_nanos);
  run.logs.insert(log);
  if (newest_.empty() || run.started_unix_nanos > runs_[newest_].started_unix_nanos) newest_ = place.run;
}

bool NewestRun::goes_along(const std::string& run) const { return run == newest_ || !runs_.contains(run); }

/// It started in other runs alone.
bool NewestRun::is_of_others(PeerId peer) const {
  const auto found = runs_of_.find(peer);
  return found != runs_of_.end() &&
         std::ranges::none_of(found->second, [&](const std::string& run) { return goes_along(run); });
}

std::vector<LogEntry> NewestRun::kept(Stretch stretch) const {
  if (!goes_along(stretch.run)) return {};
  // The launcher has one log for all runs.
  std::erase_if(stretch.entries, [&](const LogEntry& entry) {
    return entry.writer == PeerId{} && entry.event.peer && is_of_others(*entry.event.peer);
  });
  return std::move(stretch.entries);
}

std::string NewestRun::others_than(const std::string& run) const {
  const auto own = runs_.find(run);
  std::string text;
  std::size_t count = 0;
  for (const auto& [other, about] : runs_) {
    if (other == run) continue;
    std::string names;
    for (const std::string& log : about.logs) {
      if (++count > kMostNames) continue;
      const bool shared = own != runs_.end() && own->second.logs.contains(log);
      names += fmt::format("{}{}{}", names.empty() ? "" : ", ", shared ? "a part of " : "",
                           std::filesystem::path(log).filename().string());
    }
    if (!names.empty())
      text += fmt::format("{}{} of run {}", text.empty() ? "" : "; ", names, short_run(other));
  }
  if (count > kMostNames) text += fmt::format(" and {} more", count - kMostNames);
  return printable_line(text);
}

std::string NewestRun::left_out() const {
  const std::string others = others_than(newest_);
  if (others.empty()) return "";
  return fmt::format("the logs are of {} runs; this is the newest, {}; left out: {}", runs_.size(),
                     short_run(newest_), others);
}

Result<RunLogs> read_newest_run(const std::string& folder_or_log) {
  TW_TRY(const auto paths, find_event_logs(folder_or_log));
  NewestRun runs;
  std::vector<std::vector<NewestRun::Stretch>> logs;
  for (const std::string& path : paths) {
    TW_TRY(auto entries, read_event_log(path));
    logs.push_back(runs.note(path, std::move(entries)));
  }
  RunLogs found{.run = runs.run(), .logs = {}, .left_out = runs.left_out()};
  for (std::vector<NewestRun::Stretch>& log : logs) {
    std::vector<LogEntry> all;
    std::uint64_t left_out = 0;
    for (NewestRun::Stretch& stretch : log) {
      const std::size_t entries = stretch.entries.size();
      std::vector<LogEntry> kept = runs.kept(std::move(stretch));
      lower_count(left_out, kept);
      left_out += entries - kept.size();
      std::move(kept.begin(), kept.end(), std::back_inserter(all));
    }
    if (!all.empty()) found.logs.push_back(std::move(all));
  }
  return found;
}

NewestRun runs_in(const std::string& folder) {
  NewestRun runs;
  std::error_code error;
  for (const std::string& log : logs_in_folder(folder, error))
    for_each_start_and_commit(log, [&](LogEntry entry) { runs.note(log, {std::move(entry)}); });
  return runs;
}

}  // namespace tw::monitor
