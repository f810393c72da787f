// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/port.h"

#include <algorithm>
#include <utility>

#include "sim/virtual/network.h"

namespace tw::sim {

Port::Port(VirtualNetwork& network, Process& process, int number)
    : network_(network), process_(process), number_(number) {}

std::string Port::address() const { return network_.address_of(number_); }

Result<std::string> Port::open(const std::string&, world::NetworkEvents& events) {
  if (events_ != nullptr) return Error{address() + ": address in use"};
  events_ = &events;
  return address();
}

void Port::connect(const std::string& address) {
  const std::optional<int> other = network_.find(address);
  if (!other || *other == number_) {
    refuse_later(address, {Failed::unreachable, {other ? "this is my own address" : "nobody is known there"}},
                 std::chrono::milliseconds(1));
    return;
  }
  switch (network_.reach(number_, *other)) {
    case VirtualNetwork::Reach::fails:
      return refuse_later(address, {Failed::unreachable, {"timed out"}}, kDialTimeout);
    case VirtualNetwork::Reach::refuses:
      return refuse_later(address, {Failed::unreachable, {"connection refused"}},
                          network_.round_trip(number_, *other));
    case VirtualNetwork::Reach::works:
      break;
  }
  if (const Link* there = link_to(*other); there != nullptr && there->stage == Stage::open) {
    refuse_later(address, {Failed::linked, {"already connected"}}, Duration{});
    return;
  }
  if (link_to(*other) == nullptr) {
    const std::uint64_t id = make_link(*other, {.id = ++network_.links_}).id;
    network_.carry(*other, {greeting(), id, number_, Parcel::Kind::hello});
  }
  Link& link = *link_to(*other);
  if (!link.dialed.empty()) return;
  link.dialed = address;
  const Instant end = process_.scheduler().now() + kDialTimeout;
  process_.at(end, [this, port = *other, id = link.id, address] { expire(port, id, address); });
}

void Port::close(PeerId peer) {
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return;
  const int other = found->second;
  by_peer_.erase(found);
  const Link link = *end_link(other);
  say_bye(other, link, {"closed by the other side"}, {});
}

void Port::send(PeerId to, Frame message) {
  const auto found = by_peer_.find(to);
  if (found == by_peer_.end()) return;
  if (network_.tap_) network_.tap_(message);
  network_.path(number_, found->second).given += message.size();
  const Link& link = *link_to(found->second);
  if (!network_.host(number_).change) return carry(found->second, link, std::move(message));
  for (const Frame& frame : network_.host(number_).change(message)) carry(found->second, link, frame);
}

void Port::pull(PeerId to) {
  const auto found = by_peer_.find(to);
  if (found == by_peer_.end()) return;
  Link& link = *link_to(found->second);
  link.pulled = true;
  schedule_pump(found->second, link, process_.scheduler().now());
}

std::vector<int> Port::linked() const {
  std::vector<int> ports;
  for (std::size_t port = 0; port < links_.size(); ++port) {
    if (links_[port] && links_[port]->stage == Stage::open) ports.push_back(static_cast<int>(port));
  }
  return ports;
}

void Port::take(const Parcel& parcel) {
  switch (parcel.kind) {
    case Parcel::Kind::hello:
      return on_hello(parcel.from, parcel.link, parcel.frame);
    case Parcel::Kind::welcome:
      return on_welcome(parcel.from, parcel.link, parcel.frame);
    case Parcel::Kind::confirm:
      return on_confirm(parcel.from, parcel.link);
    case Parcel::Kind::frame:
      return on_frame(parcel.from, parcel.link, parcel.frame);
  }
}

void Port::on_hello(int from, std::uint64_t id, const Frame& hello) {
  if (!listening())
    return network_.carry_bye(number_, from, {id, {"connection refused"}, Failed::unreachable});
  std::string dialed;
  if (link_to(from) != nullptr) {
    if (link_to(from)->stage == Stage::dialing && number_ < from) return;  // the own dial stands
    const Link old = *end_link(from);
    dialed = old.dialed;
    if (old.stage == Stage::open) {
      by_peer_.erase(old.peer);
      events_->on_close(old.peer, "replaced by a new link");
    }
  }
  const world::Admission admission = events_->admit(hello);
  if (const auto* refusal = std::get_if<world::Refusal>(&admission)) {
    network_.carry_bye(number_, from, {id, *refusal, Failed::turned_away});
    if (!dialed.empty()) events_->on_refused(dialed, {Failed::turned_away, *refusal});
    return;
  }
  make_link(from, {id, Stage::accepted, std::get<PeerId>(admission), dialed, hello});
  if (!dialed.empty()) {
    const Instant end = process_.scheduler().now() + kDialTimeout;
    process_.at(end, [this, from, id, dialed] { expire(from, id, dialed); });
  }
  network_.carry(from, {greeting(), id, number_, Parcel::Kind::welcome});
}

void Port::on_welcome(int from, std::uint64_t id, const Frame& hello) {
  Link* link = find(from, id);
  if (link == nullptr || link->stage != Stage::dialing) {
    network_.carry_bye(number_, from, {id, {"dial given up"}, Failed::unreachable});
    return;
  }
  const world::Admission admission = events_->admit(hello);
  if (const auto* refusal = std::get_if<world::Refusal>(&admission)) {
    const std::string address = end_link(from)->dialed;
    network_.carry_bye(number_, from, {id, *refusal, Failed::turned_away});
    events_->on_refused(address, {Failed::turned_away, *refusal});
    return;
  }
  link->peer = std::get<PeerId>(admission);
  link->hello = hello;
  network_.carry(from, {{}, id, number_, Parcel::Kind::confirm});
  opened(from, *link);
}

void Port::on_confirm(int from, std::uint64_t id) {
  Link* link = find(from, id);
  if (link != nullptr && link->stage == Stage::open) return;  // a message was faster
  if (link != nullptr && link->stage == Stage::accepted) {
    opened(from, *link);
  } else {
    network_.carry_bye(number_, from, {id, {"link given up"}, {}});
  }
}

void Port::on_bye(int from, std::uint64_t id, const world::Refusal& why, std::optional<Failed> refused) {
  if (find(from, id) == nullptr) return;
  const Link old = *end_link(from);
  if (old.stage == Stage::open) {
    by_peer_.erase(old.peer);
    events_->on_close(old.peer, why.words);
  } else if (!old.dialed.empty()) {
    events_->on_refused(old.dialed, {refused.value_or(Failed::unreachable), why});
  } else if (refused) {
    events_->on_refused(network_.address_of(from), {*refused, why});
  }
}

void Port::on_frame(int from, std::uint64_t id, const Frame& frame) {
  Link* link = find(from, id);
  if (link == nullptr || link->stage == Stage::dialing) return;
  const PeerId peer = link->peer;
  const bool stands = link->stage == Stage::open || opened(from, *link);  // bulk overtook the confirmation
  if (stands) events_->on_message(peer, frame);
}

Frame Port::greeting() {
  if (!network_.host(number_).change) return hello_;
  const std::vector<Frame> frames = network_.host(number_).change(hello_);
  return frames.empty() ? Frame{} : frames.front();
}

void Port::carry(int port, const Link& link, Frame frame) {
  if (link.hole) return network_.count(number_, port, frame.size(), true);
  network_.carry(port, {std::move(frame), link.id, number_, Parcel::Kind::frame});
}

void Port::carry_bulk(int port, Link& link, Frame frame) {
  if (link.hole) {
    const std::uint64_t bytes = network_.bulk_bytes(frame);
    link.swallowed += bytes;
    return network_.count(number_, port, bytes, false);
  }
  network_.carry_bulk(port, {std::move(frame), link.id, number_, Parcel::Kind::frame});
}

void Port::say_bye(int port, const Link& link, const world::Refusal& why, std::optional<Failed> refused) {
  if (!link.hole) network_.carry_bye(number_, port, {link.id, why, refused});
}

Instant Port::bulk_room(int port, const Link& link) const {
  return network_.bulk_room(number_, port, link.swallowed);
}

bool Port::swallow(int port) {
  Link* link = link_to(port);
  if (link == nullptr) return false;
  link->hole = true;
  return link->stage == Stage::open;
}

Port::Link* Port::link_to(int port) const {
  const auto place = static_cast<std::size_t>(port);
  return place < links_.size() ? links_[place].get() : nullptr;
}

Port::Link& Port::make_link(int port, Link link) {
  const auto place = static_cast<std::size_t>(port);
  if (place >= links_.size()) links_.resize(place + 1);
  links_[place] = std::make_unique<Link>(std::move(link));
  return *links_[place];
}

std::optional<Port::Link> Port::end_link(int port) {
  const Link* link = link_to(port);
  if (link == nullptr) return std::nullopt;
  std::optional<Link> ended(*link);
  links_[static_cast<std::size_t>(port)].reset();
  return ended;
}

Port::Link* Port::find(int port, std::uint64_t id) const {
  Link* link = link_to(port);
  return link != nullptr && link->id == id ? link : nullptr;
}

bool Port::opened(int port, Link& link) {
  const PeerId peer = link.peer;
  if (!by_peer_.emplace(peer, port).second) {  // another process with this id was faster
    const Link loser = *end_link(port);
    const world::DialFailure failure{Failed::linked, {"already connected"}};
    say_bye(port, loser, failure.why, failure.kind);
    if (!loser.dialed.empty()) events_->on_refused(loser.dialed, failure);
    return false;
  }
  link.stage = Stage::open;
  link.dialed.clear();
  events_->on_open(peer, std::exchange(link.hello, {}));
  return true;
}

void Port::refuse_later(const std::string& address, const world::DialFailure& failure, Duration delay) {
  process_.at(process_.scheduler().now() + delay,
              [this, address, failure] { events_->on_refused(address, failure); });
}

void Port::expire(int port, std::uint64_t id, const std::string& address) {
  const Link* link = find(port, id);
  if (link == nullptr || link->stage == Stage::open || link->dialed != address) return;
  const Link given_up = *end_link(port);
  say_bye(port, given_up, {"timed out"}, Failed::unreachable);
  events_->on_refused(address, {Failed::unreachable, {"timed out"}});
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
  if (frame) network_.path(number_, port).given += frame->size();
  link = find(port, id);
  if (!frame || link == nullptr) return;
  link->pulled = true;
  if (!network_.host(number_).change) {
    carry_bulk(port, *link, *frame);
  } else {
    for (const Frame& sent : network_.host(number_).change(*frame)) carry_bulk(port, *link, sent);
  }
  schedule_pump(port, *link, bulk_room(port, *link));
}

}  // namespace tw::sim
