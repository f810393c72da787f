// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/links.h"

#include <algorithm>

#include "market/tariffs.h"

namespace tw::monitor {
namespace {

constexpr double kBytesOfGb = 1e9;
/// Rates are measured over at least this time, and dropped after three times as long without a report.
constexpr double kRateOverS = 10;

/// The lesser of those that are known.
std::optional<double> lesser(std::optional<double> one, std::optional<double> other) {
  return one && other ? std::min(one, other) : one ? one : other;
}

}  // namespace

std::optional<double> usual_egress_price(const std::string& from, const std::string& to) {
  const market::Tariffs& tariffs = market::Tariffs::built_in();
  const auto first = market::parse_site(from), second = market::parse_site(to);
  if (const auto store = tariffs.store(from); store && second)
    return tariffs.read_usd_per_gb(store.value(), second.value());
  if (const auto store = tariffs.store(to); store && first)
    return tariffs.write_usd_per_gb(first.value(), store.value());
  if (!first || !second) return std::nullopt;
  return tariffs.usd_per_gb(first.value(), second.value());
}

RequestPrices usual_request_prices(const std::string& store) {
  const auto known = market::Tariffs::built_in().store(store);
  if (!known) return {};
  return {.reads = known.value().usd_per_million_reads, .writes = known.value().usd_per_million_writes};
}

void Links::tell(const Sender& sender, Way& way, std::uint64_t bytes, double at_s) {
  if (way.rated_s == 0) way.rated_s = sender.began_s;
  if (bytes < way.now) way.ended += way.now;  // another process, whose start was not reported
  if (bytes < way.now) way.rated_bytes = 0;
  way.now = bytes;
  way.told_s = at_s;
  const double seconds = at_s - way.rated_s;
  if (seconds < kRateOverS) return;
  way.bytes_per_s = static_cast<double>(bytes - way.rated_bytes) / seconds;
  way.rated_s = at_s;
  way.rated_bytes = bytes;
}

void Links::take(const Seen& seen) {
  const world::Event& event = seen.event();
  if (const auto* start = event.as<event::Start>()) {
    Sender& sender = senders_[seen.writer()];
    if (!start->site.empty()) sender.site = start->site;
    sender.began_s = seen.at_s;
    const auto end = [&](Way& way) { way = {.ended = way.total(), .rated_s = seen.at_s}; };
    for (auto& [to, way] : sender.ways) end(way);
    for (auto& [store, ways] : sender.stores)
      for (Way* way : ways.all()) end(*way);
  }
  if (const auto* traffic = event.as<event::Traffic>()) tell_of(senders_[seen.writer()], *traffic, seen.at_s);
}

void Links::tell_of(Sender& sender, const event::Traffic& traffic, double at_s) {
  for (const auto& [site, bytes] : traffic.to) tell(sender, sender.ways[site], bytes, at_s);
  for (const auto& [counts, way] :
       {std::pair{&traffic.from, &StoreWays::bytes}, std::pair{&traffic.asked, &StoreWays::reads},
        std::pair{&traffic.into, &StoreWays::written_bytes}, std::pair{&traffic.wrote, &StoreWays::writes}})
    for (const auto& [store, count] : *counts) tell(sender, sender.stores[store].*way, count, at_s);
}

void Links::take(PeerId from, const wire::Status& status, double at_s) {
  const auto [found, is_new] = senders_.try_emplace(from);
  Sender& sender = found->second;
  if (is_new) sender.began_s = at_s;
  if (!status.peer.site.empty()) sender.site = status.peer.site;
  for (const BoardLink& link : status.links) {
    if (link.store.empty()) {
      tell(sender, sender.ways[link.to], link.bytes, at_s);
      continue;
    }
    StoreWays& ways = sender.stores[link.store];
    tell(sender, link.reads_store() ? ways.bytes : ways.written_bytes, link.bytes, at_s);
    tell(sender, link.reads_store() ? ways.reads : ways.writes, link.requests, at_s);
  }
}

std::vector<Links::Flow> Links::flows_of(const Sender& sender) {
  static const std::string no_store;
  std::vector<Flow> flows;
  for (const auto& [to, way] : sender.ways) flows.push_back({sender.site, to, way, no_store});
  for (const auto& [store, ways] : sender.stores) {
    if (ways.bytes.total() + ways.reads.total() > 0)
      flows.push_back({store, sender.site, ways.bytes, store, &ways.reads});
    if (ways.writes.total() > 0)
      flows.push_back({sender.site, store, ways.written_bytes, store, &ways.writes});
  }
  return flows;
}

Links::Price Links::price_between(const std::string& from, const std::string& to,
                                  const std::string& store) const {
  if (store.empty()) return {price_(from, to), std::nullopt};
  // Other hosts charge nothing that is known here, whatever a site of that name does.
  if (!market::Tariffs::built_in().store(store)) return {};
  const RequestPrices requests = usual_request_prices(store);
  return {price_(from, to), from == store ? requests.reads : requests.writes};
}

std::optional<double> Links::Price::of_bytes(std::uint64_t bytes) const {
  if (!usd_per_gb) return std::nullopt;
  return *usd_per_gb * static_cast<double>(bytes) / kBytesOfGb;
}

std::optional<double> Links::Price::of_requests(std::uint64_t requests) const {
  if (!usd_per_million_requests) return std::nullopt;
  return *usd_per_million_requests * static_cast<double>(requests) / 1e6;
}

std::map<std::string, Links::SiteLine> Links::lines_by_site(const std::vector<BoardPeer>& peers) {
  std::map<std::string, SiteLine> lines;
  const auto add = [](std::optional<double>& sum, double mbit_s) {
    if (mbit_s <= 0) sum.reset();
    if (sum) *sum += mbit_s;
  };
  for (const BoardPeer& peer : peers) {
    if (peer.state == PeerState::left || peer.state == PeerState::lost) continue;
    SiteLine& line = lines[peer.site];
    add(line.up_mbit_s, peer.up_mbit_s);
    add(line.down_mbit_s, peer.down_mbit_s);
  }
  return lines;
}

std::vector<BoardLink> Links::board(double now_s, const std::vector<BoardPeer>& peers) const {
  std::map<std::pair<std::string, std::string>, BoardLink> links;
  for (const auto& [peer, sender] : senders_) {
    for (const Flow& flow : flows_of(sender)) {
      BoardLink& link = links[{flow.from, flow.to}];
      link.from = flow.from;
      link.to = flow.to;
      if (!flow.store.empty()) link.store = flow.store;  // a site may have the name of a store
      link.bytes += flow.bytes.total();
      if (flow.requests != nullptr) link.requests += flow.requests->total();
      if (now_s - flow.bytes.told_s < 3 * kRateOverS) link.mbit_s += flow.bytes.bytes_per_s * 8e-6;
    }
  }
  std::vector<BoardLink> board;
  const auto lines = lines_by_site(peers);
  for (auto& [ends, link] : links) {
    const auto from = lines.find(link.from), to = lines.find(link.to);
    if (from != lines.end() && to != lines.end())
      link.bound_mbit_s = lesser(from->second.up_mbit_s, to->second.down_mbit_s);
    const Price price = price_between(link.from, link.to, link.store);
    link.usd_per_gb = price.usd_per_gb;
    link.usd = price.of_bytes(link.bytes).value_or(0);
    link.requests_usd = price.of_requests(link.requests);
    board.push_back(std::move(link));
  }
  return board;
}

std::vector<BoardLink> Links::links_of(PeerId peer) const {
  std::vector<BoardLink> links;
  const auto found = senders_.find(peer);
  if (found == senders_.end()) return links;
  for (const Flow& flow : flows_of(found->second)) {
    BoardLink& link = links.emplace_back();
    link.from = flow.from;
    link.to = flow.to;
    link.bytes = flow.bytes.total();
    link.store = flow.store;
    if (flow.requests != nullptr) link.requests = flow.requests->total();
  }
  std::ranges::stable_sort(links, std::greater{}, &BoardLink::bytes);
  return links;
}

Links::Usd Links::usd_of(PeerId peer) const {
  Usd sum;
  const auto found = senders_.find(peer);
  if (found == senders_.end()) return sum;
  for (const Flow& flow : flows_of(found->second)) {
    const Price price = price_between(flow.from, flow.to, flow.store);
    sum.bytes += price.of_bytes(flow.bytes.total()).value_or(0);
    if (flow.requests != nullptr) sum.requests += price.of_requests(flow.requests->total()).value_or(0);
  }
  return sum;
}

}  // namespace tw::monitor
