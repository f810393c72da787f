// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/hand_overs.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "wire/limits.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTellLeaverAgain = 500ms;
/// A round that ends this soon is waited for, however high the bandwidth is.
constexpr double kSoon_s = 2;
/// Bytes per second that are assumed for unknown bandwidth.
constexpr double kUnknownLine = 125e6;

double rate(const PeerStatus& peers, PeerId from, PeerId to) {
  const wire::Bandwidth& sender = peers.stance(from).bandwidth;
  const auto known = [](double rate) { return rate > 0 ? rate : kUnknownLine; };
  double least = std::min(known(sender.up_bytes_per_s), known(peers.stance(to).bandwidth.down_bytes_per_s));
  for (const wire::PairRate& pair : sender.slow) {
    if (pair.to == to) least = std::min(least, known(pair.bytes_per_s));
  }
  return least;
}

}  // namespace

bool HandOvers::hands_over(const Costs& costs) {
  TW_CHECK(costs.transfer_s >= 0 && costs.notice_s >= 0);
  if (!costs.round_s) return true;
  const bool in_time = *costs.round_s <= costs.notice_s;
  if (!in_time) return true;
  return costs.transfer_s <= costs.notice_s && *costs.round_s > std::max(kSoon_s, costs.transfer_s);
}

void HandOvers::on_progress(Instant now, PeerId peer, const wire::Progress& progress) {
  if (progress.outlook != wire::Outlook::leaves) return forget(peer);
  leavers_[peer].goes = now + from_seconds(progress.leaves_in_s);
}

/// Room for this leaver's sums, beside those that the custodian keeps or is about to be given.
bool HandOvers::has_room(const Leasing& leasing, PeerId custodian, PeerId leaver) const {
  std::size_t sums = leasing.kept_by(custodian) + leasing.sums_of(leaver);
  for (const auto& [other, way] : leavers_)
    if (other != leaver && way.to == custodian) sums += leasing.sums_of(other);
  return sums <= wire::kMostSlots - wire::kLeaseSlots;
}

// Preference: the same site, then an anchor, then the highest rate.
std::optional<PeerId> HandOvers::custodian(const PeerStatus& peers, const Leasing& leasing,
                                           PeerId leaver) const {
  const auto site = [&](PeerId peer) {
    const wire::Member* process = peers.process(peer);
    return process != nullptr ? process->site : std::string();
  };
  const std::string own_site = site(leaver);
  std::optional<PeerId> best;
  std::tuple<bool, bool, double> best_worth;
  for (PeerId peer : peers.owners()) {
    if (peer == leaver || !peers.is_steady(peer) || !has_room(leasing, peer, leaver)) continue;
    const std::tuple<bool, bool, double> worth{!own_site.empty() && site(peer) == own_site,
                                               peers.is_anchor(peer), rate(peers, leaver, peer)};
    if (best && worth <= best_worth) continue;
    best = peer;
    best_worth = worth;
  }
  return best;
}

double HandOvers::transfer_s(const PeerStatus& peers, const Leasing& leasing, PeerId leaver,
                             PeerId to) const {
  const auto bytes = static_cast<double>(leasing.sums_of(leaver) * sum_bytes_);
  return bytes / rate(peers, leaver, to);
}

std::optional<wire::HandOver> HandOvers::order(Instant now, const PeerStatus& peers, const Leasing& leasing,
                                               Duration reduce, PeerId peer) {
  Leaver& leaver = leavers_.at(peer);
  wire::HandOver order{round_, ballot_, leaver.to.value_or(PeerId{})};
  const bool may_go = !leasing.has_any(peer) && (!peers.is_seated(peer) || peers.has_its_seat_kept(peer));
  if (may_go) {
    order.released = true;
    return order;
  }
  if (leasing.has_late(peer)) return std::nullopt;  // the slot of a sum that was handed over would not say so
  const bool still_keeps = leaver.to && peers.counts(*leaver.to) && peers.is_steady(*leaver.to);
  if (!still_keeps) leaver.to = custodian(peers, leasing, peer);
  if (!leaver.to) return std::nullopt;
  order.to = *leaver.to;
  order.transfer_s = transfer_s(peers, leasing, peer, *leaver.to);
  const std::optional<double> work_s = leasing.seconds_left(peers, peer);
  if (work_s) order.round_left_s = *work_s + to_seconds(reduce);
  const Costs costs{work_s ? std::optional(order.round_left_s) : std::nullopt, order.transfer_s,
                    std::max(0.0, to_seconds(leaver.goes - now))};
  const bool goes_on = leaver.told != Instant{};  // the transfer is under way: the estimate may waver
  if (!goes_on && !hands_over(costs)) return std::nullopt;
  return order;
}

wire::Outbox HandOvers::step(Instant now, const PeerStatus& peers, const Leasing& leasing, Duration reduce) {
  wire::Outbox orders;
  for (auto& [peer, leaver] : leavers_) {
    if (!peers.counts(peer)) continue;
    std::optional<wire::HandOver> due = order(now, peers, leasing, reduce, peer);
    if (!due) continue;
    TW_CHECK(due->released || due->to != peer);
    const bool news = due->released != leaver.released || leaver.told == Instant{};
    if (!news && now - leaver.told < kTellLeaverAgain) continue;
    leaver.told = now;
    leaver.released = due->released;
    orders.push_back({peer, *due});
  }
  return orders;
}

}  // namespace tw::swarm
