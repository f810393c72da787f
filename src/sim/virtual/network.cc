// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/network.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace tw::sim {
namespace {

constexpr double kOvertakes = 0.2;

Duration time_of(std::uint64_t bytes, double bytes_per_s) {
  return from_seconds(static_cast<double>(bytes) / bytes_per_s);
}

}  // namespace

Port& VirtualNetwork::attach(Process& process, Capacity capacity) {
  const int number = static_cast<int>(hosts_.size());
  hosts_.push_back({std::make_unique<Port>(*this, process, number), capacity, number});
  tenants_.push_back(number);
  return *hosts_.back().port;
}

void VirtualNetwork::take_over(int successor, int former) {
  host(successor).address = host(former).address;
  tenants_[static_cast<std::size_t>(host(successor).address)] = successor;
}

void VirtualNetwork::set_quality(int a, int b, const Quality& quality) {
  path(a, b).quality = quality;
  path(b, a).quality = quality;
}

void VirtualNetwork::set_capacity(int port, Capacity capacity) { host(port).capacity = capacity; }

void VirtualNetwork::isolate(const std::set<int>& ports, bool close_links) {
  ++groups_;
  for (const int port : ports) host(port).group = groups_;
  update_cuts();
  if (!close_links) return;
  for (const int port : ports) {
    for (int other = 0; other < static_cast<int>(hosts_.size()); ++other) {
      if (host(port).group != host(other).group) reset(port, other);
    }
  }
}

void VirtualNetwork::hold(int from, int to) {
  Path& way = path(from, to);
  ++way.holds;
  way.set_cut(true);
}

void VirtualNetwork::release(int from, int to) {
  Path& way = path(from, to);
  way.holds = std::max(0, way.holds - 1);
  way.set_cut(held(from, to));
}

void VirtualNetwork::heal() {
  for (Host& host : hosts_) host.group = 0;
  for (Host& host : hosts_) {
    for (const auto& way : host.ways) {
      if (way) way->holds = 0;
    }
  }
  update_cuts();
}

bool VirtualNetwork::cut(int a, int b) const { return held(a, b) || held(b, a); }

bool VirtualNetwork::held(int from, int to) const {
  const Path* way = known_path(from, to);
  return host(from).group != host(to).group || (way != nullptr && way->holds > 0);
}

bool VirtualNetwork::black_hole(int a, int b) {
  const bool here = port(a).swallow(b);
  return port(b).swallow(a) || here;
}

void VirtualNetwork::tamper(int port, Change change) { host(port).change = std::move(change); }

std::uint64_t VirtualNetwork::bytes_sent(int from, int to) const {
  const Path* way = known_path(from, to);
  return way == nullptr ? 0 : way->sent;
}

std::uint64_t VirtualNetwork::bytes_given(int from, int to) const {
  const Path* way = known_path(from, to);
  return way == nullptr ? 0 : way->given;
}

void VirtualNetwork::reset(int a, int b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    path(from, to).lose();
    Port& port = *host(to).port;
    const Port::Link* link = port.link_to(from);
    if (link == nullptr) continue;
    port.process().at(scheduler_.now(), [&port, other = from, id = link->id] {
      port.on_bye(other, id, {"connection reset"}, {});
    });
  }
}

void VirtualNetwork::crash(int number, Death death) {
  Port& dying = port(number);
  for (int other = 0; other < static_cast<int>(hosts_.size()); ++other) {
    const Port::Link* link = dying.link_to(other);
    if (link == nullptr) continue;
    if (death != Death::clean && random_.chance(0.5)) path(number, other).lose();
    if (death != Death::silent) dying.say_bye(other, *link, {"connection reset by peer"}, {});
  }
  host(number).silent = death == Death::silent;
  dying.process().kill();
}

std::optional<int> VirtualNetwork::find(const std::string& address) const {
  const std::size_t digits = address.find('-') + 1;
  int number = -1;
  (void)std::from_chars(address.data() + digits, address.data() + address.size(), number);
  if (number < 0 || number >= static_cast<int>(hosts_.size())) return std::nullopt;
  const int tenant = tenants_[static_cast<std::size_t>(number)];
  return address_of(tenant) == address ? std::optional(tenant) : std::nullopt;
}

VirtualNetwork::Reach VirtualNetwork::reach(int from, int to) const {
  if (cut(from, to) || host(to).silent) return Reach::fails;
  return host(to).port->process().dead() || !host(to).port->listening() ? Reach::refuses : Reach::works;
}

Duration VirtualNetwork::round_trip(int a, int b) {
  return path(a, b).quality.latency + path(b, a).quality.latency;
}

std::uint64_t VirtualNetwork::bulk_bytes(const Frame& frame) const {
  const double payload = bulk_scale_ * static_cast<double>(frame.payload.size());
  return frame.head.size() + static_cast<std::uint64_t>(std::llround(payload));
}

void VirtualNetwork::count(int from, int to, std::uint64_t bytes, bool control) {
  Host& sender = host(from);
  ++sender.messages;
  if (control) sender.control_bytes += bytes;
  path(from, to).sent += bytes;
}

void VirtualNetwork::carry(int to, Parcel parcel) {
  const std::size_t bytes = parcel.kind == Parcel::Kind::confirm ? 1 : parcel.frame.size();
  count(parcel.from, to, bytes, true);
  Path& way = path(parcel.from, to);
  way.control_free = std::max(scheduler_.now(), way.control_free) + time_of(bytes, way.quality.bytes_per_s);
  way.control.push(arrival(way, way.control_free),
                   [this, to, parcel = std::move(parcel)]() mutable { deliver(to, std::move(parcel)); });
}

// Comes after all that was sent before it, in both priorities.
void VirtualNetwork::carry_bye(int from, int to, const Bye& bye) {
  Path& way = path(from, to);
  const auto say = [from, to = host(to).port.get(), bye] {
    to->process().enter([from, to, bye] { to->on_bye(from, bye.link, bye.why, bye.refused); });
  };
  way.control.push(arrival(way, std::max(scheduler_.now(), way.control_free)), [&way, say] {
    if (way.undelivered == 0) {
      say();
    } else {
      way.byes.emplace_back(say);
    }
  });
}

void VirtualNetwork::carry_bulk(int to, Parcel parcel) {
  const std::uint64_t bytes = bulk_bytes(parcel.frame);
  count(parcel.from, to, bytes, false);
  Path& way = path(parcel.from, to);
  Host& sender = host(parcel.from);
  const Instant now = scheduler_.now();
  double bytes_per_s = way.quality.bytes_per_s;
  std::uint64_t in_window = bytes;
  if (bytes > way.quality.window_bytes) {
    const auto window = static_cast<double>(way.quality.window_bytes);
    bytes_per_s = std::min(bytes_per_s, window / to_seconds(round_trip(parcel.from, to)));
    in_window = way.quality.window_bytes / 2;
  }
  sender.up_free = std::max(now, sender.up_free) + time_of(bytes, sender.capacity.up_bytes_per_s);
  way.bulk_free = std::max(sender.up_free, now + time_of(bytes, bytes_per_s));
  way.unacknowledged += in_window;
  ++way.undelivered;
  const Instant when = arrival(way, way.bulk_free);
  Call deliver = [this, to, bytes, in_window, parcel = std::move(parcel)]() mutable {
    bulk_arrived(to, bytes, in_window, std::move(parcel));
  };
  // As it is where a link has several streams.
  if (random_.chance(kOvertakes)) {
    way.bulk.push_overtaking(when, std::move(deliver));
  } else {
    way.bulk.push(when, std::move(deliver));
  }
}

void VirtualNetwork::bulk_arrived(int to, std::uint64_t bytes, std::uint64_t in_window, Parcel parcel) {
  Host& receiver = host(to);
  receiver.down_free =
      std::max(scheduler_.now(), receiver.down_free) + time_of(bytes, receiver.capacity.down_bytes_per_s);
  const std::uint64_t epoch = path(parcel.from, to).epoch;
  scheduler_.at(receiver.down_free, [this, to, epoch, in_window, parcel = std::move(parcel)]() mutable {
    Path& way = path(parcel.from, to);
    if (epoch != way.epoch) return;
    host(to).port->process().enter([this, to, epoch, in_window, parcel = std::move(parcel)] {
      hand_over_bulk(to, epoch, in_window, parcel);
    });
    way.delivered();
  });
}

void VirtualNetwork::hand_over_bulk(int to, std::uint64_t epoch, std::uint64_t in_window,
                                    const Parcel& parcel) {
  const int from = parcel.from;
  host(to).port->take(parcel);
  scheduler_.after(path(to, from).quality.latency, [this, from, to, epoch, in_window] {
    if (epoch == path(from, to).epoch) acknowledge(from, to, in_window);
  });
}

void VirtualNetwork::Path::delivered() {
  if (--undelivered > 0) return;
  for (Call& say : std::exchange(byes, {})) say();
}

void VirtualNetwork::acknowledge(int from, int to, std::uint64_t bytes) {
  path(from, to).unacknowledged -= bytes;
  Port& sender = *host(from).port;
  Port::Link* link = sender.link_to(to);
  if (link == nullptr || !link->pulled) return;
  sender.schedule_pump(to, *link, scheduler_.now());
}

Instant VirtualNetwork::bulk_room(int from, int to, std::uint64_t swallowed) {
  const Path& way = path(from, to);
  return way.unacknowledged + swallowed >= way.quality.window_bytes ? kNever : way.bulk_free;
}

VirtualNetwork::Path& VirtualNetwork::path(int from, int to) {
  auto& ways = host(from).ways;
  const auto place = static_cast<std::size_t>(to);
  if (place >= ways.size()) ways.resize(std::max(hosts_.size(), place + 1));
  auto& way = ways[place];
  if (!way) {
    way = std::make_unique<Path>(scheduler_, under_way_);
    if (held(from, to)) way->set_cut(true);
  }
  return *way;
}

const VirtualNetwork::Path* VirtualNetwork::known_path(int from, int to) const {
  const auto& ways = host(from).ways;
  const auto place = static_cast<std::size_t>(to);
  return place < ways.size() ? ways[place].get() : nullptr;
}

void VirtualNetwork::deliver(int to, Parcel parcel) {
  Port& port = *host(to).port;
  port.process().enter([&port, parcel = std::move(parcel)] { port.take(parcel); });
}

void VirtualNetwork::Path::lose() {
  control.clear();
  bulk.clear();
  byes.clear();
  ++epoch;
  unacknowledged = 0;
  undelivered = 0;
}

void VirtualNetwork::update_cuts() {
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    const auto& ways = hosts_[from].ways;
    for (std::size_t to = 0; to < ways.size(); ++to) {
      if (ways[to]) ways[to]->set_cut(held(static_cast<int>(from), static_cast<int>(to)));
    }
  }
}

void VirtualNetwork::Path::set_cut(bool cut) {
  if (cut) {
    control.cut();
    bulk.cut();
  } else {
    bulk.heal(quality.latency);
    control.heal(quality.latency);
  }
}

Instant VirtualNetwork::arrival(const Path& way, Instant left) {
  const auto jitter = static_cast<std::uint64_t>(way.quality.jitter.count());
  const auto extra = static_cast<Duration::rep>(jitter == 0 ? 0 : random_.below(jitter));
  return left + way.quality.latency + Duration{extra};
}

}  // namespace tw::sim
