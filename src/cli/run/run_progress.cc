// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_progress.h"

#include <algorithm>
#include <map>

#include "base/result.h"
#include "cli/plan/own_lives.h"
#include "monitor/fold/journal.h"
#include "monitor/logs/held_history.h"
#include "monitor/logs/log_follower.h"

namespace tw::cli {
namespace {

void take_peers(const monitor::Journal& journal, plan::RunProgress& progress) {
  int at_the_end = 0;
  for (const auto& [id, peer] : journal.peers().all()) {
    if (!monitor::Peers::stayed(peer.standing, journal.rounds().last())) continue;
    ++at_the_end;
    progress.peers += peer.standing.stopped_s ? 0 : 1;
  }
  if (progress.peers == 0) progress.peers = at_the_end;
}

/// What rounds yielded, with the time that they took.
struct Work {
  double seconds = 0, peer_seconds = 0, samples = 0;

  /// A round, from the commit of the one before.
  void add(const monitor::BoardRound& round, const monitor::BoardRound& before) {
    const double round_s = *round.committed_s - *before.committed_s;
    seconds += round_s;
    peer_seconds += round_s * static_cast<double>(round.contributors.size());
    samples += static_cast<double>(round.samples_total) - static_cast<double>(before.samples_total);
  }
};

/// No loss and no resume lies between the commits: a round that has one had to wait, which says nothing of
/// the machines.
bool is_calm(const monitor::BoardRound& round, const monitor::BoardRound& before,
             const std::vector<monitor::Interruption>& interruptions) {
  using Kind = monitor::Interruption::Kind;
  return std::ranges::none_of(interruptions, [&](const monitor::Interruption& one) {
    const bool waits = one.kind == Kind::lost || one.kind == Kind::resumed;
    return waits && one.at_s >= *before.committed_s && one.at_s < *round.committed_s;
  });
}

/// The speed of the calm ones of the recent rounds, else of all, and the peers that made it: others may have
/// gone or come since.
plan::RunSpeed measured_in(const std::vector<const monitor::BoardRound*>& recent,
                           const std::vector<monitor::Interruption>& interruptions) {
  Work calm, all;
  for (std::size_t i = 0; i + 1 < recent.size(); ++i) {
    const monitor::BoardRound& round = *recent[i];
    const monitor::BoardRound& before = *recent[i + 1];
    all.add(round, before);
    if (is_calm(round, before, interruptions)) calm.add(round, before);
  }
  const Work& work = calm.seconds > 0 ? calm : all;
  if (work.seconds <= 0 || work.samples <= 0) return {};
  return {.samples_per_s = work.samples / work.seconds, .peers = work.peer_seconds / work.seconds};
}

/// A machine that came or went at a site.
struct SiteChange {
  double at_s = 0;
  market::Site site;
  bool came = false;
  bool taken = false;
};

std::vector<SiteChange> changes_of(const std::vector<Life>& lives,
                                   const std::map<PeerId, market::Site>& sites) {
  std::vector<SiteChange> changes;
  for (const Life& life : lives) {
    const auto site = sites.find(life.peer);
    if (site == sites.end()) continue;
    changes.push_back({.at_s = life.began_s, .site = site->second, .came = true});
    if (life.end != LifeEnd::none)
      changes.push_back({.at_s = life.ended_s, .site = site->second, .taken = life.end == LifeEnd::taken});
  }
  std::ranges::stable_sort(changes, {}, &SiteChange::at_s);
  return changes;
}

/// By site of peers that are no anchors: since when it has a machine, or none any more.
std::vector<plan::ZoneSeen> zones_of(const monitor::Board& board, const std::vector<Life>& lives,
                                     double now_s) {
  std::map<PeerId, market::Site> sites;
  std::map<market::Site, plan::ZoneSeen> zones;
  for (const monitor::BoardPeer& peer : board.peers) {
    const auto site = market::parse_site(peer.site);
    if (!site || peer.anchor) continue;
    sites.emplace(peer.peer, site.value());
    zones.try_emplace(site.value(), plan::ZoneSeen{.site = site.value(), .sight = {}, .spells = {}});
  }
  std::map<market::Site, double> changed_s;
  for (const SiteChange& change : changes_of(lives, sites)) {
    plan::ZoneSeen& zone = zones.at(change.site);
    zone.living += change.came ? 1 : -1;
    const bool up = zone.living > 0 || (zone.sight.up && !change.taken);
    if (zone.sight.up != up) changed_s[change.site] = change.at_s;
    zone.sight.up = up;
  }
  for (const Life& life : lives)
    if (const auto site = sites.find(life.peer); site != sites.end())
      zones.at(site->second).spells.add_life(life.hours(), life.end == LifeEnd::taken);
  std::vector<plan::ZoneSeen> all;
  for (auto& [site, zone] : zones) {
    zone.sight.age_h = std::max(0.0, now_s - changed_s[site]) / 3600;
    all.push_back(std::move(zone));
  }
  return all;
}

/// Hours of peers that only the logs of others know.
double hours_without_log(const monitor::Board& board, const std::vector<Life>& lives) {
  double hours = 0;
  for (const Life& life : lives) {
    const auto peer = std::ranges::find(board.peers, life.peer, &monitor::BoardPeer::peer);
    if (peer == board.peers.end() || peer->usage.hours == 0) hours += life.hours();
  }
  return hours;
}

/// What these links cost with their requests. Nothing: no price of any of them is known.
template <class Is>
std::optional<double> usd_of(const std::vector<monitor::BoardLink>& links, Is is) {
  std::optional<double> usd;
  for (const monitor::BoardLink& link : links)
    if (is(link) && (link.usd_per_gb || link.requests_usd))
      usd = usd.value_or(0) + link.usd + link.requests_usd.value_or(0);
  return usd;
}

/// Their sum is Money::usd().
plan::Paid paid_in(const monitor::Board& board) {
  using monitor::BoardLink;
  return {.priced_hours = board.money.priced_hours,
          .machines_usd = board.money.machines_usd.value_or(0),
          .averaging_usd = usd_of(board.links, [](const BoardLink& link) { return link.store.empty(); }),
          .reads_usd = usd_of(board.links, [](const BoardLink& link) { return link.reads_store(); }),
          .writes_usd =
              usd_of(board.links, [](const BoardLink& link) { return link.writes_store(); }).value_or(0)};
}

}  // namespace

Result<plan::RunProgress> progress_of(const monitor::LogSource& logs, std::int64_t now_unix_s,
                                      const PeerPrices& prices) {
  plan::RunProgress progress;
  LivesInLogs found;
  TW_TRY(logs.each(LivesInLogs::kWanted,
                   [&](const monitor::LogEntry& entry, std::size_t) { found.take(entry); }));
  if (!found.begun_unix_nanos()) return progress;
  const double begun_s = static_cast<double>(*found.begun_unix_nanos()) / 1e9;
  const auto now_s = static_cast<double>(now_unix_s);
  TW_TRY(const auto history, monitor::HeldHistory::of(logs));
  TW_TRY(const auto journal, journal_of(logs, history, {.usd_per_h = prices, .whole = true}));
  const monitor::Board board = journal.board();
  progress.elapsed_h = std::max(0.0, (board.is_over() ? board.now_s : now_s) - begun_s) / 3600;
  progress.paid = paid_in(board);
  progress.samples = static_cast<double>(board.samples);
  progress.samples_per_s = board.speed.samples_per_s;
  progress.measured = measured_in(journal.rounds().recent(), board.interruptions);
  take_peers(journal, progress);
  progress.losses = static_cast<int>(std::ranges::count(
      board.interruptions, monitor::Interruption::Kind::lost, &monitor::Interruption::kind));
  const std::vector<Life> lives = std::move(found).lives();
  progress.zones = zones_of(board, lives, now_s);
  progress.peer_hours = board.money.machine_hours + hours_without_log(board, lives);
  return progress;
}

Result<plan::RunProgress> progress_in(const std::string& path, std::int64_t now_unix_s) {
  TW_TRY(const auto logs, monitor::LogFollower::of_whole_logs(path));
  TW_TRY(const auto prices, prices_for(path, "", logs.writers()));
  return progress_of(logs, now_unix_s, prices);
}

}  // namespace tw::cli
