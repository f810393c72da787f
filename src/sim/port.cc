// SPDX-License-Identifier: Apache-2.0
#include "sim/port.h"

#include <algorithm>
#include <utility>

#include "sim/network.h"

namespace tw {

Port::Port(VirtualNetwork& network, Process& process, int number)
    : network_(network), process_(process), number_(number) {}

std::string Port::address() const { return VirtualNetwork::address_of(number_); }

Result<std::string> Port::open(const std::string&, NetworkEvents& events) {
  if (events_ != nullptr) return Error{address() + ": address in use"};
  events_ = &events;
  return address();
}

void Port::connect(const std::string& address) {
  const std::optional<int> other = network_.find(address);
  if (!other || *other == number_) {
    refuse_later(address, other ? "this is my own address" : "nobody is known there",
                 std::chrono::milliseconds(1));
    return;
  }
  switch (network_.reach(number_, *other)) {
    case VirtualNetwork::Reach::fails:
      return refuse_later(address, "timed out", kDialTimeout);
    case VirtualNetwork::Reach::refuses:
      return refuse_later(address, "connection refused", network_.round_trip(number_, *other));
    case VirtualNetwork::Reach::works:
      break;
  }
  const auto found = links_.find(*other);
  if (found != links_.end() && found->second.stage == Stage::open) {
    refuse_later(address, "linked already", Duration{});
    return;
  }
  Link& link = links_[*other];
  if (link.id == 0) {
    link.id = network_.next_link();
    const Frame hello = greeting();
    network_.carry(number_, *other, hello.size(),
                   [from = number_, id = link.id, hello](Port& to) { to.on_hello(from, id, hello); });
  }
  if (!link.dialed.empty()) return;
  link.dialed = address;
  const Instant end = process_.scheduler().now() + kDialTimeout;
  process_.at(end, [this, port = *other, id = link.id, address] { expire(port, id, address); });
}

void Port::close(PeerId peer) {
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return;
  const int other = found->second;
  const Link link = links_.at(other);
  by_peer_.erase(found);
  links_.erase(other);
  say_bye(other, link, "closed by the other side", false);
}

void Port::send(PeerId to, Frame message) {
  const auto found = by_peer_.find(to);
  if (found == by_peer_.end()) return;
  if (network_.tap_) network_.tap_(message);
  const Link& link = links_.at(found->second);
  for (const Frame& frame : network_.tampered(number_, std::move(message))) carry(found->second, link, frame);
}

void Port::pull(PeerId to) {
  const auto found = by_peer_.find(to);
  if (found == by_peer_.end()) return;
  Link& link = links_.at(found->second);
  link.pulled = true;
  schedule_pump(found->second, link, process_.scheduler().now());
}

std::vector<int> Port::linked() const {
  std::vector<int> ports;
  for (const auto& [port, link] : links_) {
    if (link.stage == Stage::open) ports.push_back(port);
  }
  return ports;
}

void Port::on_hello(int from, std::uint64_t id, const Frame& hello) {
  if (!listening()) return network_.carry_bye(number_, from, {id, "connection refused", true});
  std::string dialed;
  if (const auto found = links_.find(from); found != links_.end()) {
    const Link old = found->second;
    if (old.stage == Stage::dialing && number_ < from) return;  // the own dial stands
    dialed = old.dialed;
    links_.erase(found);
    if (old.stage == Stage::open) {
      by_peer_.erase(old.peer);
      events_->on_close(old.peer, "replaced by a new link");
    }
  }
  const Result<PeerId> peer = events_->admit(hello);
  if (!peer) {
    network_.carry_bye(number_, from, {id, peer.error().message, true});
    if (!dialed.empty()) events_->on_refused(dialed, peer.error().message);
    return;
  }
  Link& link = links_[from];
  link = {id, Stage::accepted, peer.value(), dialed};
  if (!dialed.empty()) {
    const Instant end = process_.scheduler().now() + kDialTimeout;
    process_.at(end, [this, from, id, dialed] { expire(from, id, dialed); });
  }
  const Frame own = greeting();
  network_.carry(number_, from, own.size(),
                 [from_here = number_, id, own](Port& port) { port.on_welcome(from_here, id, own); });
}

void Port::on_welcome(int from, std::uint64_t id, const Frame& hello) {
  Link* link = find(from, id);
  if (link == nullptr || link->stage != Stage::dialing) {
    network_.carry_bye(number_, from, {id, "dial given up", true});
    return;
  }
  const Result<PeerId> peer = events_->admit(hello);
  if (!peer) {
    const std::string address = link->dialed;
    links_.erase(from);
    network_.carry_bye(number_, from, {id, peer.error().message, true});
    events_->on_refused(address, peer.error().message);
    return;
  }
  link->peer = peer.value();
  network_.carry(number_, from, 1, [from_here = number_, id](Port& port) { port.on_confirm(from_here, id); });
  opened(from, *link);
}

void Port::on_confirm(int from, std::uint64_t id) {
  Link* link = find(from, id);
  if (link != nullptr && link->stage == Stage::open) return;  // a message was faster
  if (link != nullptr && link->stage == Stage::accepted) {
    opened(from, *link);
  } else {
    network_.carry_bye(number_, from, {id, "link given up", false});
  }
}

void Port::on_bye(int from, std::uint64_t id, const std::string& why, bool refused) {
  const Link* link = find(from, id);
  if (link == nullptr) return;
  const Link old = *link;
  links_.erase(from);
  if (old.stage == Stage::open) {
    by_peer_.erase(old.peer);
    events_->on_close(old.peer, why);
  } else if (!old.dialed.empty()) {
    events_->on_refused(old.dialed, why);
  } else if (refused) {
    events_->on_refused(VirtualNetwork::address_of(from), why);
  }
}

void Port::on_frame(int from, std::uint64_t id, const Frame& frame) {
  Link* link = find(from, id);
  if (link == nullptr || link->stage == Stage::dialing) return;
  const PeerId peer = link->peer;
  if (link->stage == Stage::accepted) opened(from, *link);  // bulk that overtook the confirmation
  events_->on_message(peer, frame);
}

Frame Port::greeting() {
  const std::vector<Frame> frames = network_.tampered(number_, hello_);
  return frames.empty() ? Frame{} : frames.front();
}

void Port::carry(int port, const Link& link, const Frame& frame) {
  if (link.hole) return network_.count(number_, port, frame.size(), true);
  network_.carry(number_, port, frame.size(),
                 [from = number_, id = link.id, frame](Port& to) { to.on_frame(from, id, frame); });
}

void Port::carry_bulk(int port, Link& link, const Frame& frame) {
  const std::uint64_t bytes = network_.bulk_bytes(frame);
  if (link.hole) {
    link.swallowed += bytes;
    return network_.count(number_, port, bytes, false);
  }
  network_.carry_bulk(number_, port, bytes,
                      [from = number_, id = link.id, frame](Port& to) { to.on_frame(from, id, frame); });
}

void Port::say_bye(int port, const Link& link, const std::string& why, bool refused) {
  if (!link.hole) network_.carry_bye(number_, port, {link.id, why, refused});
}

Instant Port::bulk_room(int port, const Link& link) const {
  return network_.bulk_room(number_, port, link.swallowed);
}

bool Port::swallow(int port) {
  const auto found = links_.find(port);
  if (found == links_.end()) return false;
  found->second.hole = true;
  return found->second.stage == Stage::open;
}

Port::Link* Port::find(int port, std::uint64_t id) {
  const auto found = links_.find(port);
  return found != links_.end() && found->second.id == id ? &found->second : nullptr;
}

void Port::opened(int port, Link& link) {
  link.stage = Stage::open;
  link.dialed.clear();
  const PeerId peer = link.peer;
  by_peer_[peer] = port;
  events_->on_open(peer);
}

void Port::refuse_later(const std::string& address, const std::string& why, Duration delay) {
  process_.at(process_.scheduler().now() + delay,
              [this, address, why] { events_->on_refused(address, why); });
}

void Port::expire(int port, std::uint64_t id, const std::string& address) {
  const Link* link = find(port, id);
  if (link == nullptr || link->stage == Stage::open || link->dialed != address) return;
  const Link given_up = *link;
  links_.erase(port);
  say_bye(port, given_up, "timed out", true);
  events_->on_refused(address, "timed out");
}

void Port::schedule_pump(int port, Link& link, Instant when) {
  if (link.pumping || when == kNever) return;  // an acknowledgement makes room, and calls here
  link.pumping = true;
  process_.at(when, [this, port, id = link.id] { pump(port, id); });
}

void Port::pump(int port, std::uint64_t id) {
  Link* link = find(port, id);
  if (link == nullptr) return;
  link->pumping = false;
  if (!link->pulled) return;
  const Instant room = bulk_room(port, *link);
  if (room > process_.scheduler().now()) return schedule_pump(port, *link, room);
  link->pulled = false;
  const PeerId peer = link->peer;
  const std::optional<Frame> frame = events_->next_bulk(peer);
  link = find(port, id);
  if (!frame || link == nullptr) return;
  link->pulled = true;
  for (const Frame& sent : network_.tampered(number_, *frame)) carry_bulk(port, *link, sent);
  schedule_pump(port, *link, bulk_room(port, *link));
}

}  // namespace tw
