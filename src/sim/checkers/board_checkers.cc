// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/board_checkers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "world/event_table.h"

namespace tw::sim {
namespace {

constexpr double kTolerance = 0.001;
/// What a link takes in the moment in which it breaks.
constexpr double kBytesInDoubt = 4096;

monitor::JournalOptions with_prices(const Rules& rules) {
  const auto egress = [prices = rules.prices](const std::string& from,
                                              const std::string& to) -> std::optional<double> {
    const auto found = prices.find(from);
    if (found == prices.end() || from == to) return 0.0;
    return found->second.egress_usd_per_gb;
  };
  return {.usd_per_h = {}, .egress = egress, .budget_usd = {}};
}

/// As the process around a session completes and logs it; virtual clocks begin in 1970.
monitor::LogEntry entry_of(const Rules& rules, PeerId peer, world::Event event) {
  const auto price = rules.prices.find(event.text("site"));
  if (event.phase == world::Phase::start && price != rules.prices.end())
    event.numbers.emplace_back("usd_per_h", price->second.usd_per_h);
  return {.writer = peer, .unix_nanos = event.at.time_since_epoch().count(), .event = std::move(event)};
}

bool is_close(double a, double b, double most_apart) {
  return std::abs(a - b) <= most_apart + kTolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

CostAddsUp::CostAddsUp(const Rules& rules) : Checker("I10"), rules_(rules), journal_(with_prices(rules)) {}

void CostAddsUp::add_process(const Meter& meter) {
  const auto prices = rules_.prices.find(meter.site);
  if (prices == rules_.prices.end()) return;
  machines_usd_ += prices->second.usd_per_h * to_seconds(meter.last - meter.begun) / 3600;
  for (const auto& [to, bytes] : meter.given)
    if (to != meter.site) egress_usd_ += prices->second.egress_usd_per_gb * static_cast<double>(bytes) / 1e9;
}

void CostAddsUp::on_traffic(PeerId peer, const std::map<std::string, std::uint64_t>& given) {
  meters_[peer].given = given;
}

void CostAddsUp::on_event(PeerId peer, const world::Event& event) {
  journal_.take(entry_of(rules_, peer, event));
  Meter& meter = meters_[peer];
  if (event.phase == world::Phase::start) {
    add_process(meter);
    meter = {.site = event.text("site"), .begun = event.at, .last = event.at, .given = {}};
  }
  meter.last = std::max(meter.last, event.at);
  if (event.phase != world::Phase::traffic) return;
  for (const auto& [name, bytes] : event.numbers) {
    if (!name.starts_with(world::kSentTo)) continue;
    const std::string to = name.substr(name.find(':') + 1);
    const auto truth = static_cast<double>(meter.given[to]);
    if (!is_close(bytes, truth, kBytesInDoubt))
      violated(fmt::format("peer {} says that it sent {} bytes to {}, its network was given {}", peer.value,
                           bytes, to, truth));
  }
}

void CostAddsUp::on_end(std::span<const Survivor>) {
  for (const auto& [peer, meter] : meters_) add_process(meter);
  const monitor::Money money = journal_.board().money;
  const double in_doubt_usd = 1e-9;
  if (!is_close(money.machines_usd.value_or(0), machines_usd_, in_doubt_usd))
    violated(fmt::format("the board says {} USD for machines, prices and uptimes make {}",
                         money.machines_usd.value_or(0), machines_usd_));
  if (!is_close(money.egress_usd, egress_usd_,
                in_doubt_usd + static_cast<double>(meters_.size()) * kBytesInDoubt / 1e9))
    violated(fmt::format("the board says {} USD for traffic, tariffs and bytes make {}", money.egress_usd,
                         egress_usd_));
}

BoardsAgree::BoardsAgree(const Rules& rules)
    : Checker("I11"), rules_(rules), logs_(with_prices(rules)), live_(with_prices(rules)) {}

void BoardsAgree::on_event(PeerId peer, const world::Event& event) {
  const monitor::LogEntry entry = entry_of(rules_, peer, event);
  logs_.take(entry);
  own_.try_emplace(peer, with_prices(rules_)).first->second.take(entry);
  rewound_ |= event.phase == world::Phase::restore && event.cause == world::Cause::checkpoint;
  if (++events_ % kEventsPerStatus == 0) tell(peer, to_seconds(event.at.time_since_epoch()));
}

void BoardsAgree::on_end(std::span<const Survivor> survivors) {
  for (const Survivor& survivor : survivors)
    if (own_.contains(survivor.peer)) tell(survivor.peer, to_seconds(survivor.now.time_since_epoch()));
}

void BoardsAgree::tell(PeerId peer, double now_s) {
  const wire::Status status = own_.at(peer).status(peer, now_s);
  if (!is_sound(status)) violated(fmt::format("peer {} tells what nobody takes for a status", peer.value));
  live_.take(peer, status, now_s);
  compare(peer, live_.board(now_s), logs_.board(now_s));
}

void BoardsAgree::compare(PeerId told, const monitor::Board& live, const monitor::Board& logs) {
  const auto of = [&](const monitor::Board& board) {
    return std::ranges::find(board.peers, told, &monitor::BoardPeer::peer);
  };
  const auto here = of(live), there = of(logs);
  if (here == live.peers.end() || there == logs.peers.end())
    return violated(fmt::format("peer {} told how it stands, and is on no board", told.value));
  const auto differs = [&](std::string_view what, const auto& a, const auto& b) {
    if (a != b)
      violated(fmt::format("{} of peer {}: {} by its own word, {} by the logs", what, told.value, a, b));
  };
  differs("site", here->site, there->site);
  // What others think of it is not its own word, and the two sides of a split think differently.
  const auto is_judged = [](const monitor::BoardPeer& peer) {
    return peer.state == monitor::PeerState::lost || peer.state == monitor::PeerState::left;
  };
  if (!is_judged(*here) && !is_judged(*there)) differs("state", name_of(here->state), name_of(there->state));
  differs("round", here->round, there->round);
  if (!rewound_) {
    differs("rounds", here->rounds, there->rounds);
    differs("samples", here->samples, there->samples);
  }
  differs("digest", here->digest, there->digest);
  differs("round of the digest", here->digest_round, there->digest_round);
  differs("price", here->usd_per_h.value_or(-1), there->usd_per_h.value_or(-1));
  differs("notice", here->notice.has_value(), there->notice.has_value());
  if (!is_close(here->usage.hours, there->usage.hours, 1e-9))
    violated(fmt::format("hours of peer {}: {} by its own word, {} by the logs", told.value,
                         here->usage.hours, there->usage.hours));
}

}  // namespace tw::sim
