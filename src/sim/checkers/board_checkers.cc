// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/board_checkers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "monitor/report/report.h"
#include "wire/limits.h"

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
  return {.usd_per_h = {}, .egress = egress};
}

/// As the process around a session completes and logs it; virtual clocks begin in 1970.
monitor::LogEntry entry_of(const Rules& rules, PeerId peer, world::Event event) {
  if (auto* start = std::get_if<event::Start>(&event.fact)) {
    const auto price = rules.prices.find(start->site);
    if (price != rules.prices.end()) start->usd_per_h = price->second.usd_per_h;
  }
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
  if (const auto* start = event.as<event::Start>()) {
    add_process(meter);
    meter = {.site = start->site, .begun = event.at, .last = event.at, .given = {}};
  }
  meter.last = std::max(meter.last, event.at);
  const auto* traffic = event.as<event::Traffic>();
  if (traffic == nullptr) return;
  for (const auto& [to, bytes] : traffic->to) {
    const std::uint64_t truth = meter.given[to];
    if (!is_close(static_cast<double>(bytes), static_cast<double>(truth), kBytesInDoubt))
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
  if (!is_close(money.egress_usd.value_or(0), egress_usd_,
                in_doubt_usd + static_cast<double>(meters_.size()) * kBytesInDoubt / 1e9))
    violated(fmt::format("the board says {} USD for traffic, tariffs and bytes make {}",
                         money.egress_usd.value_or(0), egress_usd_));
}

void ReportAddsUp::on_event(PeerId peer, const world::Event& event) {
  logs_[peer].push_back(entry_of(rules_, peer, event));
}

void ReportAddsUp::on_end(std::span<const Survivor>) {
  const wire::Record* const last = ledger_.newest();
  if (last == nullptr || !last->last) return;
  std::vector<std::vector<monitor::LogEntry>> logs;
  for (auto& [peer, log] : logs_) logs.push_back(std::move(log));
  const monitor::Summary summary = monitor::summarize(logs);
  const std::uint64_t told = summary.samples + summary.samples_carried.value_or(0);
  std::map<Round, std::uint64_t> batches;  // a record begun anew has the round of the one before
  for (const wire::Record* r = last; r != nullptr && r->round > 0; r = ledger_.find(r->parent))
    batches[r->round] = rules_.batch_of(*r);
  std::uint64_t due = 0;
  for (Round round = 1; round <= last->round; ++round)
    due += batches.contains(round) ? batches.at(round) : rules_.batch.target_batch_size;
  if (told != due)
    violated(fmt::format("the report has {} samples and {} carried in {} rounds of {} in all",
                         summary.samples, summary.samples_carried.value_or(0), last->round, due));
}

BoardsAgree::BoardsAgree(const Rules& rules)
    : Checker("I11"), rules_(rules), logs_(with_prices(rules)), live_(with_prices(rules)) {}

// A status does not say whether a round is the one that the peer's former process had committed: its part of
// it is then missing in the reports of peers, and not in their logs.
void BoardsAgree::note_given_up(PeerId peer, Round after) {
  std::map<Round, std::set<PeerId>> committed_by;
  for (auto at = doubts_.committed.lower_bound({after + 1, PeerId{}}); at != doubts_.committed.end(); ++at)
    committed_by[at->first].insert(at->second);
  for (const auto& [round, peers] : committed_by)
    if (peers == std::set{peer}) doubts_.given_up.insert(round);
}

void BoardsAgree::note_doubts(PeerId peer, const world::Event& event) {
  const auto told_twice = [&](auto& by, const auto& what) {
    return by.try_emplace(what, peer).first->second != peer || doubts_.lost.contains(peer);
  };
  if (event.as<event::Lost>() && event.peer) {
    doubts_.told_of_lost.insert({event.round, peer});
    if (auto& lost = doubts_.lost_by[{event.round, peer}]; lost.insert(*event.peer).second)
      if (lost.size() > wire::kMostLeftOut) doubts_.cut.insert(event.round);
    if (doubts_.lost.contains(peer)) doubts_.of_round.insert(event.round);
    doubts_.lost.insert(*event.peer);
  } else if (const auto* commit = event.as<event::Commit>()) {
    doubts_.committed.insert({event.round, peer});
    doubts_.records[event.round].insert(commit->digest);
    if (commit->cause == event::Cause::minority) doubts_.parted = std::min(doubts_.parted, event.round);
  } else if (const auto* restored = event.as<event::Restore>()) {
    if (restored->cause == event::Cause::none && !restored->digest.empty()) note_given_up(peer, event.round);
  } else if (event.as<event::Reissue>() && event.peer) {
    doubts_.of_ledger |= told_twice(doubts_.reissued, std::pair(event.round, *event.peer));
  } else if (const auto* skip = event.as<event::Skip>()) {
    doubts_.of_ledger |= told_twice(doubts_.skipped, skip->sample.value_or(0));
  }
}

void BoardsAgree::on_event(PeerId peer, const world::Event& event) {
  const monitor::LogEntry entry = entry_of(rules_, peer, event);
  logs_.take(entry);
  monitor::Journal& own = own_.try_emplace(peer, with_prices(rules_)).first->second;
  own.take(entry);
  note_doubts(peer, event);
  if (const auto* restored = event.as<event::Restore>())
    rewound_ |= restored->cause == event::Cause::checkpoint;
  const double now_s = last_s_[peer] = to_seconds(event.at.time_since_epoch());
  if (++events_ % kEventsPerStatus == 0) return tell(peer, now_s);
  if (event.phase() == world::Phase::commit) live_.take(peer, own.status(peer, now_s), now_s);
}

void BoardsAgree::on_end(std::span<const Survivor> survivors) {
  for (const Survivor& survivor : survivors)
    if (own_.contains(survivor.peer)) tell(survivor.peer, to_seconds(survivor.now.time_since_epoch()));
  // The others' last word did not reach anybody in the run; here it does.
  for (const auto& [peer, own] : own_) live_.take(peer, own.status(peer, last_s_[peer]), last_s_[peer]);
  compare_whole(live_.board(), logs_.board());
}

void BoardsAgree::tell(PeerId peer, double now_s) {
  const wire::Status status = own_.at(peer).status(peer, now_s);
  if (!is_sound(status)) violated(fmt::format("peer {} sends a status that no peer accepts", peer.value));
  live_.take(peer, status, now_s);
  compare(peer, live_.board(now_s), logs_.board(now_s));
}

void BoardsAgree::compare_whole(const monitor::Board& live, const monitor::Board& logs) {
  if (rewound_) return;
  const monitor::SampleLedger &here = live.ledger, &there = logs.ledger;
  const bool more = here.again >= there.again && here.skipped >= there.skipped;
  if (doubts_.of_ledger ? !more : !(here == there))
    violated(
        fmt::format("ledger: {} again, {} handed over, {} skipped, {} committed as peers report, {}, "
                    "{}, {}, {} by the logs",
                    here.again, here.handed_over, here.skipped, here.committed, there.again,
                    there.handed_over, there.skipped, there.committed));
  const auto cost = [](const monitor::Money& money) { return money.usd().value_or(0); };
  if (!is_close(cost(live.money), cost(logs.money), 1e-9))
    violated(fmt::format("cost: {} USD as peers report, {} by the logs", cost(live.money), cost(logs.money)));
  compare_rounds(live, logs);
}

void BoardsAgree::compare_rounds(const monitor::Board& live, const monitor::Board& logs) {
  for (const auto& [round, peer] : doubts_.told_of_lost)
    if (!doubts_.committed.contains({round, peer})) doubts_.of_round.insert(round);
  const auto peers_of = [](const monitor::BoardRound& round) {
    std::set<PeerId> peers;
    for (const monitor::LeftOut& out : round.left_out) peers.insert(out.peer);
    return peers;
  };
  for (const monitor::BoardRound& there : logs.rounds) {
    if (!there.committed_s || doubts_.records[there.round].size() > 1) continue;
    const auto here = std::ranges::find(live.rounds, there.round, &monitor::BoardRound::round);
    if (here == live.rounds.end()) {
      violated(fmt::format("round {} is in the logs, and no peer reported it", there.round));
      continue;
    }
    std::vector<PeerId> told;  // one that died in the round did not report it
    std::ranges::copy_if(there.contributors, std::back_inserter(told), [&, round = there.round](PeerId peer) {
      return doubts_.committed.contains({round, peer});
    });
    const bool told_whole = !doubts_.given_up.contains(there.round);
    if (told_whole && here->contributors != told)
      violated(fmt::format("round {}: {} contributors as peers report, {} by the logs", there.round,
                           here->contributors.size(), told.size()));
    std::set<PeerId> out = peers_of(*here);
    for (const PeerId peer : there.contributors) out.erase(peer);
    const std::set<PeerId> all_out = peers_of(there);
    const bool agree =
        doubts_.cut.contains(there.round) ? std::ranges::includes(all_out, out) : out == all_out;
    if (there.round < doubts_.parted && !doubts_.of_round.contains(there.round) && !agree)
      violated(fmt::format("round {}: {} left out as peers report, {} by the logs", there.round, out.size(),
                           there.left_out.size()));
    if (told_whole && !is_close(here->loss.value_or(0), there.loss.value_or(0), 1e-9))
      violated(fmt::format("round {}: loss {} as peers report, {} by the logs", there.round,
                           here->loss.value_or(0), there.loss.value_or(0)));
  }
}

void BoardsAgree::compare(PeerId told, const monitor::Board& live, const monitor::Board& logs) {
  const auto of = [&](const monitor::Board& board) {
    return std::ranges::find(board.peers, told, &monitor::BoardPeer::peer);
  };
  const auto here = of(live), there = of(logs);
  if (here == live.peers.end() || there == logs.peers.end())
    return violated(fmt::format("peer {} sent its status, and is on no board", told.value));
  const auto differs = [&](std::string_view what, const auto& a, const auto& b) {
    if (a != b)
      violated(fmt::format("{} of peer {}: {} as it reports, {} by the logs", what, told.value, a, b));
  };
  differs("site", here->site, there->site);
  // What others think of it is not its own report, and the two sides of a split think differently.
  const auto is_judged = [](const monitor::BoardPeer& peer) {
    return peer.state == monitor::PeerState::lost || peer.state == monitor::PeerState::left;
  };
  if (!is_judged(*here) && !is_judged(*there)) differs("state", name_of(here->state), name_of(there->state));
  differs("round", here->round, there->round);
  if (!rewound_ && !is_judged(*there)) {  // of one that is gone others tell the samples, too
    differs("rounds", here->rounds, there->rounds);
    differs("samples", here->samples, there->samples);
  }
  differs("digest", here->digest, there->digest);
  differs("round of the digest", here->digest_round, there->digest_round);
  differs("price", here->usd_per_h.value_or(-1), there->usd_per_h.value_or(-1));
  differs("notice", here->notice.has_value(), there->notice.has_value());
  if (!is_close(here->usage.hours, there->usage.hours, 1e-9))
    violated(fmt::format("hours of peer {}: {} as it reports, {} by the logs", told.value, here->usage.hours,
                         there->usage.hours));
}

}  // namespace tw::sim
