// SPDX-License-Identifier: Apache-2.0
#include "cli/own_lives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace tw {
namespace {

constexpr double kNanosPerHour = 3600e9;

/// The peer whose life an entry begins or ends.
std::optional<PeerId> subject(const LogEntry& entry) {
  switch (entry.event.phase) {
    case Phase::start:
    case Phase::stop:
      return entry.writer;
    case Phase::join:
    case Phase::leave:
    case Phase::lost:
      return entry.event.peer;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<Lived> lives_of(std::vector<LogEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const LogEntry& a, const LogEntry& b) { return a.unix_nanos < b.unix_nanos; });
  std::map<PeerId, std::int64_t> began;
  std::vector<Lived> lives;
  const auto end = [&](PeerId peer, std::int64_t nanos, bool taken) {
    const auto begin = began.find(peer);
    if (begin == began.end()) return;
    lives.push_back({static_cast<double>(nanos - begin->second) / kNanosPerHour, taken});
    began.erase(begin);
  };
  for (const LogEntry& entry : entries) {
    const auto peer = subject(entry);
    if (!peer) continue;
    const Phase phase = entry.event.phase;
    if (phase == Phase::start || phase == Phase::join)
      began.emplace(*peer, entry.unix_nanos);
    else
      end(*peer, entry.unix_nanos, phase == Phase::lost);
  }
  while (!began.empty()) end(began.begin()->first, entries.back().unix_nanos, false);
  return lives;
}

Result<std::vector<Lived>> lives_in(const std::string& folder) {
  auto logs = read_event_logs(folder);
  if (!logs) return logs.error();
  std::vector<LogEntry> entries;
  for (std::vector<LogEntry>& log : logs.value())
    std::move(log.begin(), log.end(), std::back_inserter(entries));
  return lives_of(std::move(entries));
}

}  // namespace tw
