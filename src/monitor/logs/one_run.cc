// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/one_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace tw::monitor {
namespace {

/// Runs that logs have in common, and one of these logs.
struct Together {
  std::set<std::string> runs;
  std::string log;
};

/// The digests of starts after which a round was committed: a peer that the others refuse has none.
std::set<std::string> runs_in(const std::vector<LogEntry>& log) {
  std::set<std::string> runs;
  std::string started;
  for (const LogEntry& entry : log) {
    if (const auto* start = entry.event.as<event::Start>()) started = start->digest;
    if (entry.event.as<event::Commit>() && !started.empty()) runs.insert(started);
  }
  return runs;
}

bool share_a_run(const Together& a, const Together& b) {
  return std::ranges::any_of(a.runs, [&](const std::string& run) { return b.runs.contains(run); });
}

}  // namespace

Status check_one_run(const std::vector<std::vector<LogEntry>>& logs) {
  std::vector<Together> groups;
  for (const std::vector<LogEntry>& log : logs) {
    Together group{runs_in(log), ""};
    if (group.runs.empty()) continue;
    group.log = event_log_name(log.front().writer);
    const auto [others, end] = std::ranges::stable_partition(
        groups, [&](const Together& other) { return !share_a_run(group, other); });
    for (auto other = others; other != end; ++other) {
      group.runs.merge(other->runs);
      group.log = other->log;
    }
    groups.erase(others, end);
    groups.push_back(std::move(group));
  }
  if (groups.size() < 2) return Unit{};
  std::ranges::sort(groups, {}, &Together::log);
  return Error{
      fmt::format("the logs are of two runs: {} in {}, and {} in {}; expected logs of one run in a folder",
                  *groups[0].runs.begin(), groups[0].log, *groups[1].runs.begin(), groups[1].log)};
}

}  // namespace tw::monitor
