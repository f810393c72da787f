// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/links.h"

#include <algorithm>

#include "market/tariffs.h"
#include "monitor/report/report.h"
#include "world/event_table.h"

namespace tw::monitor {
namespace {

constexpr double kBytesOfGb = 1e9;
/// Rates are measured over at least this time, and dropped after three times as long without a report.
constexpr double kRateOverS = 10;

std::optional<double> requests_usd(const std::string& store, std::uint64_t requests) {
  const auto price = usual_request_price(store);
  return price ? std::optional(*price * static_cast<double>(requests) / 1e6) : std::nullopt;
}

/// The lesser of those that are known.
std::optional<double> lesser(std::optional<double> one, std::optional<double> other) {
  return one && other ? std::min(one, other) : one ? one : other;
}

/// Hosts that are no store of the catalog charge nothing that is known here, whatever a site of that name
/// does.
bool is_priced_store(const std::string& store) { return market::Tariffs::built_in().store(store).ok(); }

}  // namespace

std::optional<double> usual_egress_price(const std::string& from, const std::string& to) {
  const market::Tariffs& tariffs = market::Tariffs::built_in();
  const auto first = market::parse_site(from), second = market::parse_site(to);
  if (const auto store = tariffs.store(from); store && second)
    return tariffs.read_usd_per_gb(store.value(), second.value());
  if (!first || !second) return std::nullopt;
  return tariffs.usd_per_gb(first.value(), second.value());
}

std::optional<double> usual_request_price(const std::string& store) {
  const auto known = market::Tariffs::built_in().store(store);
  return known ? known.value().usd_per_million_reads : std::nullopt;
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
  if (event.phase == world::Phase::start) {
    Sender& sender = senders_[seen.writer()];
    if (const std::string site = event.text("site"); !site.empty()) sender.site = site;
    sender.began_s = seen.at_s;
    const auto end = [&](Way& way) { way = {.ended = way.total(), .rated_s = seen.at_s}; };
    for (auto& [to, way] : sender.ways) end(way);
    for (auto& [store, reads] : sender.stores) {
      end(reads.bytes);
      end(reads.requests);
    }
  }
  const auto up = number_in(event, "up_mbit_s"), down = number_in(event, "down_mbit_s");
  if (up || down) {
    wire::LineWord& line = senders_[seen.writer()].line;
    line = {.up_mbit_s = up.value_or(line.up_mbit_s), .down_mbit_s = down.value_or(line.down_mbit_s)};
  }
  if (event.phase == world::Phase::traffic) tell_of_traffic(senders_[seen.writer()], seen);
}

void Links::tell_of_traffic(Sender& sender, const Seen& seen) {
  for (const auto& [name, number] : seen.event().numbers) {
    if (!(number >= 0 && number < 0x1p53)) continue;
    const auto count = static_cast<std::uint64_t>(number);
    const auto after = [&](std::string_view prefix) -> std::optional<std::string> {
      return name.starts_with(prefix) ? std::optional(name.substr(prefix.size())) : std::nullopt;
    };
    if (const auto site = after(world::kSentTo)) tell(sender, sender.ways[*site], count, seen.at_s);
    if (const auto store = after(world::kReadFrom))
      tell(sender, sender.stores[*store].bytes, count, seen.at_s);
    if (const auto store = after(world::kAskedOf))
      tell(sender, sender.stores[*store].requests, count, seen.at_s);
  }
}

void Links::take(PeerId from, const wire::Status& status, double at_s) {
  const auto [found, is_new] = senders_.try_emplace(from);
  Sender& sender = found->second;
  if (is_new) sender.began_s = at_s;
  if (!status.site.empty()) sender.site = status.site;
  sender.line = status.line;
  for (const wire::SiteBytes& sent : status.sent) tell(sender, sender.ways[sent.site], sent.bytes, at_s);
  for (const wire::StoreWord& read : status.stores) {
    tell(sender, sender.stores[read.store].bytes, read.bytes, at_s);
    tell(sender, sender.stores[read.store].requests, read.requests, at_s);
  }
}

double Links::usd(const std::string& from, const std::string& to, std::uint64_t bytes) const {
  return price_(from, to).value_or(0) * static_cast<double>(bytes) / kBytesOfGb;
}

std::map<std::string, Links::SiteLine> Links::lines_by_site(const std::function<bool(PeerId)>& runs) const {
  std::map<std::string, SiteLine> lines;
  const auto add = [](std::optional<double>& sum, double mbit_s) {
    if (mbit_s <= 0) sum.reset();
    if (sum) *sum += mbit_s;
  };
  for (const auto& [peer, sender] : senders_) {
    if (!runs(peer)) continue;
    SiteLine& line = lines[sender.site];
    add(line.up_mbit_s, sender.line.up_mbit_s);
    add(line.down_mbit_s, sender.line.down_mbit_s);
  }
  return lines;
}

std::vector<BoardLink> Links::board(double now_s, const std::function<bool(PeerId)>& runs) const {
  std::map<std::pair<std::string, std::string>, BoardLink> links;
  for (const auto& [peer, sender] : senders_) {
    const auto add = [&](const std::string& from, const std::string& to, const Way& way) -> BoardLink& {
      BoardLink& link = links[{from, to}];
      link.from = from;
      link.to = to;
      link.bytes += way.total();
      if (now_s - way.told_s < 3 * kRateOverS) link.mbit_s += way.bytes_per_s * 8e-6;
      return link;
    };
    for (const auto& [to, way] : sender.ways) add(sender.site, to, way);
    for (const auto& [store, reads] : sender.stores) {
      BoardLink& link = add(store, sender.site, reads.bytes);
      link.is_store = true;
      link.requests += reads.requests.total();
    }
  }
  std::vector<BoardLink> board;
  const auto lines = lines_by_site(runs);
  for (auto& [ends, link] : links) {
    const auto from = lines.find(link.from), to = lines.find(link.to);
    if (from != lines.end() && to != lines.end())
      link.bound_mbit_s = lesser(from->second.up_mbit_s, to->second.down_mbit_s);
    if (link.is_store) link.requests_usd = requests_usd(link.from, link.requests);
    if (!link.is_store || is_priced_store(link.from)) link.usd_per_gb = price_(link.from, link.to);
    link.usd = link.usd_per_gb.value_or(0) * static_cast<double>(link.bytes) / kBytesOfGb;
    board.push_back(std::move(link));
  }
  return board;
}

wire::LineWord Links::line_of(PeerId peer) const {
  const auto found = senders_.find(peer);
  return found == senders_.end() ? wire::LineWord{} : found->second.line;
}

std::vector<wire::SiteBytes> Links::sent_by(PeerId peer) const {
  std::vector<wire::SiteBytes> sent;
  const auto found = senders_.find(peer);
  if (found == senders_.end()) return sent;
  for (const auto& [to, way] : found->second.ways) sent.push_back({to, way.total()});
  return sent;
}

std::vector<wire::StoreWord> Links::read_by(PeerId peer) const {
  std::vector<wire::StoreWord> read;
  const auto found = senders_.find(peer);
  if (found == senders_.end()) return read;
  for (const auto& [store, reads] : found->second.stores)
    read.push_back({store, reads.requests.total(), reads.bytes.total()});
  return read;
}

Links::Usd Links::usd_of(PeerId peer) const {
  Usd sum;
  const auto found = senders_.find(peer);
  if (found == senders_.end()) return sum;
  const Sender& sender = found->second;
  for (const auto& [to, way] : sender.ways) sum.bytes += usd(sender.site, to, way.total());
  for (const auto& [store, reads] : sender.stores) {
    if (is_priced_store(store)) sum.bytes += usd(store, sender.site, reads.bytes.total());
    sum.requests += requests_usd(store, reads.requests.total()).value_or(0);
  }
  return sum;
}

}  // namespace tw::monitor
