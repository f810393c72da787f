// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/money.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tw::monitor {
namespace {

constexpr std::size_t kFewestDurations = 3;
constexpr std::size_t kForecastRounds = 50;
constexpr double kTail = 0.1;  ///< of the durations, on each side

void add_machines(const Board& board, const wire::GonePeers& gone, Money& money) {
  double usd = gone.machines_usd;
  money.machine_hours = gone.hours;
  money.priced_hours = gone.priced_hours;
  bool is_known = gone.priced_hours > 0;
  for (const BoardPeer& peer : board.peers) {
    money.machine_hours += peer.usage.hours;
    if (!peer.usd_per_h) continue;
    is_known = true;
    money.priced_hours += peer.usage.hours;
    usd += peer.usage.hours * *peer.usd_per_h;
  }
  if (is_known) money.machines_usd = usd;
}

/// Nothing where some links count and the price of none of them is known.
std::optional<double> known_part(double usd, const std::vector<BoardLink>& links, const auto& counts,
                                 const auto& is_priced) {
  const auto unknown = [&](const BoardLink& link) { return counts(link) && !is_priced(link); };
  const auto known = [&](const BoardLink& link) { return counts(link) && is_priced(link); };
  if (usd == 0 && std::ranges::any_of(links, unknown) && std::ranges::none_of(links, known))
    return std::nullopt;
  return usd;
}

void add_traffic(const Board& board, const wire::GonePeers& gone, Money& money) {
  double egress_usd = gone.egress_usd, requests_usd = gone.requests_usd;
  for (const BoardLink& link : board.links) {
    egress_usd += link.usd;
    requests_usd += link.requests_usd.value_or(0);
  }
  money.egress_usd = known_part(
      egress_usd, board.links, [](const BoardLink& link) { return link.bytes > 0; },
      [](const BoardLink& link) { return link.usd_per_gb.has_value(); });
  money.requests_usd = known_part(
      requests_usd, board.links, [](const BoardLink& link) { return link.requests > 0; },
      [](const BoardLink& link) { return link.requests_usd.has_value(); });
}

/// Whether the hours of all peers that contributed are known: of one without a log they are not.
bool knows_contributors(const Board& board) {
  const std::vector<PeerId>* before = nullptr;
  for (const BoardRound& round : board.rounds) {
    if (before != nullptr && *before == round.contributors) continue;
    before = &round.contributors;
    for (const PeerId peer : round.contributors) {
      const auto found = std::ranges::find(board.peers, peer, &BoardPeer::peer);
      if (found == board.peers.end() || found->heard_s == 0) return false;
    }
  }
  return true;
}

std::optional<double> rate_of(const Board& board) {
  double usd_per_h = 0;
  bool is_known = false;
  for (const BoardPeer& peer : board.peers) {
    const bool runs = peer.state != PeerState::left && peer.state != PeerState::lost;
    if (!runs) continue;
    if (!peer.usd_per_h) return std::nullopt;
    is_known = true;
    usd_per_h += *peer.usd_per_h;
  }
  for (const BoardLink& link :
       board.links)  // copies come in bursts, of which no rate says what an hour costs
    if (!link.writes_store()) usd_per_h += link.mbit_s / 8e3 * 3600 * link.usd_per_gb.value_or(0);
  return is_known ? std::optional(usd_per_h) : std::nullopt;
}

/// From commit to commit, of the last rounds, sorted.
std::vector<double> durations_of(const std::vector<BoardRound>& rounds) {
  std::vector<double> durations;
  for (std::size_t i = rounds.size(); i-- > 1 && durations.size() < kForecastRounds;) {
    const auto &before = rounds[i - 1].committed_s, &after = rounds[i].committed_s;
    if (before && after && *after > *before) durations.push_back(*after - *before);
  }
  std::ranges::sort(durations);
  return durations;
}

double at_share(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

/// usd: of the run so far; nothing: not known of all its peers.
void forecast(const Board& board, std::optional<double> usd, Money& money) {
  if (board.complete) {
    money.left_s = 0;
    if (usd) money.forecast = UsdRange{*usd, *usd, *usd};
    return;
  }
  const std::vector<double> durations = durations_of(board.rounds);
  if (!board.last_round || durations.size() < kFewestDurations) return;
  const double left = static_cast<double>(*board.last_round - std::min(board.round, *board.last_round));
  money.left_s = left * at_share(durations, 0.5);
  if (!usd || !money.usd_per_h) return;
  const auto after = [&](double share) {
    return *usd + *money.usd_per_h * left * at_share(durations, share) / 3600;
  };
  money.forecast = UsdRange{after(kTail), after(0.5), after(1 - kTail)};
}

}  // namespace

Money money_of(const Board& board, const wire::GonePeers& gone, std::optional<double> budget_usd) {
  Money money;
  money.budget_usd = budget_usd;
  add_machines(board, gone, money);
  add_traffic(board, gone, money);
  money.usd_per_h = rate_of(board);
  const bool is_whole = money.is_priced() && knows_contributors(board);
  const std::optional<double> usd = is_whole ? money.usd() : std::nullopt;
  if (usd && board.samples > 0) money.usd_per_million = *usd / static_cast<double>(board.samples) * 1e6;
  forecast(board, usd, money);
  return money;
}

}  // namespace tw::monitor
