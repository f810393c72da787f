// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_progress.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/result.h"
#include "cli/plan/own_lives.h"
#include "monitor/fold/journal.h"

namespace tw::cli {
namespace {

constexpr int kRecentRounds = 20;
constexpr std::string_view kOwnSignal = "SIGTERM";  ///< ends a machine by its owner's wish: not a taken one

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

/// Taken: lost, or gone after a notice of its cloud.
enum class Change { came, left, taken };

struct SpotChange {
  double at_s = 0;
  PeerId peer;
  Change change{};
};

std::vector<SpotChange> changes_of(const std::vector<monitor::Interruption>& interruptions) {
  std::vector<SpotChange> changes;
  std::set<PeerId> told;
  for (const monitor::Interruption& one : interruptions) {
    using Kind = monitor::Interruption::Kind;
    if (one.kind == Kind::joined) {
      told.erase(one.peer);
      changes.push_back({one.at_s, one.peer, Change::came});
    } else if (one.kind == Kind::notice) {
      if (!one.detail.starts_with(kOwnSignal)) told.insert(one.peer);
    } else if (one.kind == Kind::lost || one.kind == Kind::left) {
      const bool taken = one.kind == Kind::lost || told.contains(one.peer);
      changes.push_back({one.at_s, one.peer, taken ? Change::taken : Change::left});
    }
  }
  return changes;
}

/// By site of peers that are no anchors: since when it has a machine, or none any more. Times are unix times;
/// peers that the run does not see come are there from `begun_s` on.
std::vector<plan::ZoneSeen> zones_of(const monitor::Board& board, double begun_s, double now_s) {
  std::map<market::Site, plan::ZoneSeen> zones;
  std::map<market::Site, double> changed_s;
  std::map<PeerId, double> began_s;
  std::map<PeerId, market::Site> sites;
  for (const monitor::BoardPeer& peer : board.peers) {
    const auto site = market::parse_site(peer.site);
    if (site && !peer.anchor) sites.emplace(peer.peer, site.value());
  }
  const std::vector<SpotChange> changes = changes_of(board.interruptions);
  for (const auto& [peer, site] : sites) {
    plan::ZoneSeen& zone =
        zones.try_emplace(site, plan::ZoneSeen{.site = site, .sight = {}, .spells = {}}).first->second;
    const auto first = std::ranges::find(changes, peer, &SpotChange::peer);
    if (first != changes.end() && first->change == Change::came) continue;
    began_s[peer] = begun_s;
    ++zone.living;
    zone.sight.up = true;
  }
  const auto live = [&](plan::ZoneSeen& zone, PeerId peer, double until_s, bool taken) {
    zone.spells.add_life((until_s - began_s[peer]) / 3600, taken);
  };
  for (const SpotChange& change : changes) {
    const auto site = sites.find(change.peer);
    const bool came = change.change == Change::came, taken = change.change == Change::taken;
    if (site == sites.end() || began_s.contains(change.peer) == came) continue;
    plan::ZoneSeen& zone = zones.at(site->second);
    zone.living += came ? 1 : -1;
    const bool up = zone.living > 0 || (zone.sight.up && !taken);
    if (zone.sight.up != up) changed_s[site->second] = change.at_s;
    zone.sight.up = up;
    if (came) {
      began_s[change.peer] = change.at_s;
    } else {
      live(zone, change.peer, change.at_s, taken);
      began_s.erase(change.peer);
    }
  }
  for (const auto& [peer, begun] : began_s) live(zones.at(sites.at(peer)), peer, now_s, false);
  std::vector<plan::ZoneSeen> all;
  for (auto& [site, zone] : zones) {
    const double since_s = changed_s.try_emplace(site, begun_s).first->second;
    zone.sight.age_h = std::max(0.0, now_s - since_s) / 3600;
    all.push_back(std::move(zone));
  }
  return all;
}

}  // namespace

plan::RunProgress progress_of(const std::vector<std::vector<monitor::LogEntry>>& logs,
                              std::int64_t now_unix_s) {
  plan::RunProgress progress;
  std::vector<monitor::LogEntry> entries = merge(logs);
  if (entries.empty()) return progress;
  std::int64_t begun = entries.front().unix_nanos;
  for (const monitor::LogEntry& entry : entries) begun = std::min(begun, entry.unix_nanos);
  const double begun_s = static_cast<double>(begun) / 1e9, now_s = static_cast<double>(now_unix_s);
  progress.elapsed_h = std::max(0.0, now_s - begun_s) / 3600;
  const monitor::Journal journal = journal_of(logs, {.whole = true});
  const monitor::Board board = journal.board();
  take_rounds(board.rounds, progress);
  take_peers(journal, progress);
  progress.losses = static_cast<int>(std::ranges::count(
      board.interruptions, monitor::Interruption::Kind::lost, &monitor::Interruption::kind));
  progress.zones = zones_of(board, begun_s, now_s);
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
