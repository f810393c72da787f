// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/newest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text/printable.h"
#include "monitor/logs/log_file.h"
#include "monitor/logs/past_run.h"

namespace tw::monitor {
namespace {

constexpr std::size_t kMostNames = 8;

}  // namespace

std::string short_run(const std::string& run) {
  constexpr std::size_t kDigits = 8;
  return printable_line(run.substr(0, kDigits));
}

const std::string& NewestRun::note(const std::string& log, const LogEntry& entry) {
  Place& place = places_[log];
  if (const auto* start = entry.event.as<event::Start>()) {
    place = {.run = start->digest, .started_unix_nanos = entry.unix_nanos};
    if (!place.run.empty()) runs_of_[entry.writer].insert(place.run);
  }
  const bool is_round =
      entry.event.phase() == world::Phase::accumulate || entry.event.phase() == world::Phase::commit;
  if (is_round && !place.begun && !place.run.empty()) begin(log, place);
  if (entry.writer != PeerId{}) writers_[place.run].insert(entry.writer);
  return place.run;
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

bool NewestRun::keeps(const std::string& run, const LogEntry& entry) const {
  if (!goes_along(run)) return false;
  // The launcher has one log for all runs.
  return entry.writer != PeerId{} || !entry.event.peer || !is_of_others(*entry.event.peer);
}

std::vector<PeerId> NewestRun::writers() const {
  std::set<PeerId> all;
  for (const auto& [run, writers] : writers_)
    if (goes_along(run)) all.insert(writers.begin(), writers.end());
  return {all.begin(), all.end()};
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

NewestRun runs_in(const std::string& folder) {
  NewestRun runs;
  std::error_code error;
  for (const std::string& log : logs_in_folder(folder, error))
    for_each_start_and_commit(log, [&](const LogEntry& entry) { runs.note(log, entry); });
  return runs;
}

}  // namespace tw::monitor
