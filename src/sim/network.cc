// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tw {
namespace {

Duration time_of(std::uint64_t bytes, double bytes_per_s) {
  return from_seconds(static_cast<double>(bytes) / bytes_per_s);
}

}  // namespace

Port& VirtualNetwork::attach(Process& process, Capacity capacity) {
  const int number = static_cast<int>(hosts_.size());
  hosts_.push_back({std::make_unique<Port>(*this, process, number), capacity});
  return *hosts_.back().port;
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
  ++path(from, to).holds;
  update_cut(from, to, path(from, to));
}

void VirtualNetwork::release(int from, int to) {
  Path& way = path(from, to);
  way.holds = std::max(0, way.holds - 1);
  update_cut(from, to, way);
}

void VirtualNetwork::heal() {
  for (Host& host : hosts_) host.group = 0;
  for (const auto& [ends, way] : paths_) way->holds = 0;
  update_cuts();
}

bool VirtualNetwork::cut(int a, int b) const { return held(a, b) || held(b, a); }

bool VirtualNetwork::held(int from, int to) const {
  const auto way = paths_.find({from, to});
  return host(from).group != host(to).group || (way != paths_.end() && way->second->holds > 0);
}

bool VirtualNetwork::black_hole(int a, int b) {
  const bool here = port(a).swallow(b);
  return port(b).swallow(a) || here;
}

void VirtualNetwork::tamper(int port, Change change) { host(port).change = std::move(change); }

std::uint64_t VirtualNetwork::bytes_sent(int from, int to) const {
  const auto way = paths_.find({from, to});
  return way == paths_.end() ? 0 : way->second->sent;
}

void VirtualNetwork::reset(int a, int b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    lose(path(from, to));
    Port& port = *host(to).port;
    const auto link = port.links_.find(from);
    if (link == port.links_.end()) continue;
    port.process().at(scheduler_.now(), [&port, other = from, id = link->second.id] {
      port.on_bye(other, id, "connection reset", false);
    });
  }
}

void VirtualNetwork::crash(int number, Death death) {
  Port& dying = port(number);
  for (const auto& [other, link] : dying.links_) {
    if (death != Death::clean && random_.chance(0.5)) lose(path(number, other));
    if (death != Death::silent) dying.say_bye(other, link, "connection reset by peer", false);
  }
  host(number).silent = death == Death::silent;
  dying.process().kill();
}

std::optional<int> VirtualNetwork::find(const std::string& address) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (address_of(static_cast<int>(i)) == address) return static_cast<int>(i);
  }
  return std::nullopt;
}

VirtualNetwork::Reach VirtualNetwork::reach(int from, int to) const {
  if (cut(from, to) || host(to).silent) return Reach::fails;
  return host(to).port->process().dead() || !host(to).port->listening() ? Reach::refuses : Reach::works;
}

Duration VirtualNetwork::round_trip(int a, int b) {
  return path(a, b).quality.latency + path(b, a).quality.latency;
}

std::vector<Frame> VirtualNetwork::tampered(int from, Frame frame) {
  const Change& change = host(from).change;
  return change ? change(frame) : std::vector<Frame>{std::move(frame)};
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

void VirtualNetwork::carry(int from, int to, std::size_t bytes, Delivery delivery) {
  count(from, to, bytes, true);
  Path& way = path(from, to);
  way.control_free = std::max(scheduler_.now(), way.control_free) + time_of(bytes, way.quality.bytes_per_s);
  way.control.push(arrival(way, way.control_free),
                   [this, to, delivery = std::move(delivery)] { deliver(to, delivery); });
}

// Comes after all that was sent before it, in both priorities.
void VirtualNetwork::carry_bye(int from, int to, const Bye& bye) {
  Path& way = path(from, to);
  const auto say = [this, from, to, bye] {
    deliver(to, [from, bye](Port& port) { port.on_bye(from, bye.link, bye.why, bye.refused); });
  };
  way.control.push(arrival(way, std::max(scheduler_.now(), way.control_free)), [&way, say] {
    if (way.undelivered == 0) {
      say();
    } else {
      way.byes.push_back(say);
    }
  });
}

void VirtualNetwork::carry_bulk(int from, int to, std::uint64_t bytes, Delivery delivery) {
  count(from, to, bytes, false);
  Path& way = path(from, to);
  Host& sender = host(from);
  const Instant now = scheduler_.now();
  const bool beyond_window = bytes > way.quality.window_bytes;
  const double windows_per_s = 1 / to_seconds(round_trip(from, to));
  const double bytes_per_s =
      beyond_window
          ? std::min(way.quality.bytes_per_s, static_cast<double>(way.quality.window_bytes) * windows_per_s)
          : way.quality.bytes_per_s;
  const std::uint64_t in_window = beyond_window ? way.quality.window_bytes / 2 : bytes;
  sender.up_free = std::max(now, sender.up_free) + time_of(bytes, sender.capacity.up_bytes_per_s);
  way.bulk_free = std::max(sender.up_free, now + time_of(bytes, bytes_per_s));
  way.unacknowledged += in_window;
  ++way.undelivered;
  way.bulk.push(arrival(way, way.bulk_free),
                [this, from, to, bytes, in_window, delivery = std::move(delivery)] {
                  bulk_arrived(from, to, {bytes, in_window}, delivery);
                });
}

void VirtualNetwork::bulk_arrived(int from, int to, BulkSize size, const Delivery& delivery) {
  Host& receiver = host(to);
  receiver.down_free = std::max(scheduler_.now(), receiver.down_free) +
                       time_of(size.bytes, receiver.capacity.down_bytes_per_s);
  Path& way = path(from, to);
  scheduler_.at(receiver.down_free, [this, &way, epoch = way.epoch, from, to, size, delivery] {
    if (epoch != way.epoch) return;
    deliver(to, [this, &way, epoch, from, to, size, delivery](Port& port) {
      delivery(port);
      scheduler_.after(path(to, from).quality.latency, [this, &way, epoch, from, to, size] {
        if (epoch == way.epoch) acknowledge(from, to, size.in_window);
      });
    });
    bulk_delivered(way);
  });
}

void VirtualNetwork::bulk_delivered(Path& way) {
  if (--way.undelivered > 0) return;
  while (!way.byes.empty()) {
    way.byes.front()();
    way.byes.pop_front();
  }
}

void VirtualNetwork::acknowledge(int from, int to, std::uint64_t bytes) {
  path(from, to).unacknowledged -= bytes;
  Port& sender = *host(from).port;
  const auto link = sender.links_.find(to);
  if (link == sender.links_.end() || !link->second.pulled) return;
  sender.schedule_pump(to, link->second, scheduler_.now());
}

Instant VirtualNetwork::bulk_room(int from, int to, std::uint64_t swallowed) {
  const Path& way = path(from, to);
  return way.unacknowledged + swallowed >= way.quality.window_bytes ? kNever : way.bulk_free;
}

VirtualNetwork::Path& VirtualNetwork::path(int from, int to) {
  auto& way = paths_[{from, to}];
  if (!way) {
    way = std::make_unique<Path>(scheduler_);
    if (held(from, to)) {
      way->control.cut();
      way->bulk.cut();
    }
  }
  return *way;
}

void VirtualNetwork::deliver(int to, const Delivery& delivery) {
  Port& port = *host(to).port;
  port.process().enter([&port, delivery] { delivery(port); });
}

void VirtualNetwork::lose(Path& way) {
  way.control.clear();
  way.bulk.clear();
  way.byes.clear();
  ++way.epoch;
  way.unacknowledged = 0;
  way.undelivered = 0;
}

void VirtualNetwork::update_cuts() {
  for (const auto& [ends, way] : paths_) update_cut(ends.first, ends.second, *way);
}

void VirtualNetwork::update_cut(int from, int to, Path& way) {
  if (held(from, to)) {
    way.control.cut();
    way.bulk.cut();
  } else {
    way.bulk.heal(way.quality.latency);
    way.control.heal(way.quality.latency);
  }
}

Instant VirtualNetwork::arrival(const Path& way, Instant left) {
  const auto jitter = static_cast<std::uint64_t>(way.quality.jitter.count());
  const auto extra = static_cast<Duration::rep>(jitter == 0 ? 0 : random_.below(jitter));
  return left + way.quality.latency + Duration{extra};
}

}  // namespace tw
