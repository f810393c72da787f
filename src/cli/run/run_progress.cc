// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_progress.h"

#include <algorithm>
#include <filesystem>

#include "base/result.h"
#include "cli/plan/own_lives.h"
#include "monitor/fold/journal.h"

namespace tw::cli {
namespace {

constexpr int kRecentRounds = 20;

/// By the rounds that say how many samples the run has.
void take_rounds(std::vector<monitor::BoardRound> rounds, plan::RunProgress& progress) {
  std::erase_if(rounds, [](const monitor::BoardRound& round) {
    return !round.committed_s || round.samples_total == 0;
  });
  if (rounds.empty()) return;
  const monitor::BoardRound& last = rounds.back();
  progress.samples = static_cast<double>(last.samples_total);
  const std::size_t back = std::min<std::size_t>(rounds.size() - 1, kRecentRounds);
  const monitor::BoardRound& before = rounds[rounds.size() - 1 - back];
  const double seconds = *last.committed_s - *before.committed_s;
  if (seconds > 0)
    progress.samples_per_s = static_cast<double>(last.samples_total - before.samples_total) / seconds;
}

void take_peers(const monitor::Journal& journal, plan::RunProgress& progress) {
  int at_the_end = 0;
  for (const auto& [id, peer] : journal.peers().all()) {
    if (!monitor::Peers::stayed(peer.standing, journal.rounds().last())) continue;
    ++at_the_end;
    progress.peers += peer.standing.stopped_s ? 0 : 1;
  }
  if (progress.peers == 0) progress.peers = at_the_end;
}

}  // namespace

plan::RunProgress progress_of(const std::vector<std::vector<monitor::LogEntry>>& logs,
                              std::int64_t now_unix_s) {
  plan::RunProgress progress;
  std::vector<monitor::LogEntry> entries = merge(logs);
  if (entries.empty()) return progress;
  std::int64_t begun = entries.front().unix_nanos;
  for (const monitor::LogEntry& entry : entries) begun = std::min(begun, entry.unix_nanos);
  progress.elapsed_h =
      std::max(0.0, static_cast<double>(now_unix_s) - static_cast<double>(begun) / 1e9) / 3600;
  const monitor::Journal journal = journal_of(logs, {.whole = true});
  const monitor::Board board = journal.board();
  take_rounds(board.rounds, progress);
  take_peers(journal, progress);
  progress.losses = static_cast<int>(std::ranges::count(
      board.interruptions, monitor::Interruption::Kind::lost, &monitor::Interruption::kind));
  for (const market::Lived& life : lives_of(std::move(entries))) progress.peer_hours += life.hours;
  return progress;
}

Result<plan::RunProgress> progress_in(const std::string& path, std::int64_t now_unix_s) {
  if (std::filesystem::is_regular_file(path)) {
    TW_TRY(auto log, monitor::read_event_log(path));
    return progress_of({std::move(log)}, now_unix_s);
  }
  TW_TRY(const auto logs, monitor::read_event_logs(path));
  return progress_of(logs, now_unix_s);
}

}  // namespace tw::cli
