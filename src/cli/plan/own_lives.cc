// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/own_lives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"

namespace tw::cli {
namespace {

constexpr double kNanosPerHour = 3600e9;

/// The peer whose life an entry begins or ends.
std::optional<PeerId> subject(const monitor::LogEntry& entry) {
  switch (entry.event.phase) {
    case world::Phase::start:
    case world::Phase::stop:
      return entry.writer;
    case world::Phase::join:
    case world::Phase::leave:
    case world::Phase::lost:
      return entry.event.peer;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<market::Lived> lives_of(std::vector<monitor::LogEntry> entries) {
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const monitor::LogEntry& a, const monitor::LogEntry& b) { return a.unix_nanos < b.unix_nanos; });
  std::map<PeerId, std::int64_t> began;
  std::vector<market::Lived> lives;
  const auto end = [&](PeerId peer, std::int64_t nanos, bool taken) {
    const auto begin = began.find(peer);
    if (begin == began.end()) return;
    lives.push_back({static_cast<double>(nanos - begin->second) / kNanosPerHour, taken});
    began.erase(begin);
  };
  for (const monitor::LogEntry& entry : entries) {
    const auto peer = subject(entry);
    if (!peer) continue;
    const world::Phase phase = entry.event.phase;
    if (phase == world::Phase::start || phase == world::Phase::join)
      began.emplace(*peer, entry.unix_nanos);
    else
      end(*peer, entry.unix_nanos, phase == world::Phase::lost);
  }
  while (!began.empty()) end(began.begin()->first, entries.back().unix_nanos, false);
  return lives;
}

Result<std::vector<market::Lived>> lives_in(const std::string& folder) {
  TW_TRY(auto logs, monitor::read_event_logs(folder));
  std::vector<monitor::LogEntry> entries;
  for (std::vector<monitor::LogEntry>& log : logs)
    std::move(log.begin(), log.end(), std::back_inserter(entries));
  return lives_of(std::move(entries));
}

}  // namespace tw::cli
