// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/network_tcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/peer_name.h"
#include "base/result.h"
#include "host/loop.h"
#include "host/tcp/admission/dial.h"
#include "host/tcp/stream.h"
#include "wire/frame.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr auto kDialTime = 10s;  // see dial.h

/// Cause and words of a dismissal by DoorQueue.
std::pair<event::Cause, std::string> told_as(Doorway::Reason reason, Duration patience) {
  switch (reason) {
    case Doorway::Reason::silent:
      return {event::Cause::silent,
              fmt::format("said nothing within {} s",
                          to_seconds(std::min<Duration>(DoorQueue::kFirstByte, patience)))};
    case Doorway::Reason::slow:
      return {event::Cause::slow, fmt::format("no hello within {} s", to_seconds(patience))};
    case Doorway::Reason::crowded:
      return {event::Cause::crowded, "too many unauthenticated connections at a time, and it was the oldest"};
  }
  return {};
}

}  // namespace

TcpNetwork::TcpNetwork(Loop& loop, PeerId self, world::Random& random, Refused on_refused, TcpOptions options)
    : loop_(loop), self_(self), random_(random), on_refused_(std::move(on_refused)), options_(options) {}

TcpNetwork::~TcpNetwork() {
  for (auto& [peer, link] : links_) link->release().close();
  for (auto& [serial, departure] : departures_) departure.streams.close();
  for (auto& [serial, extra] : extra_streams_) extra->close();
  for (auto& [serial, greeted] : handshakes_) greeted.handshake->drop();
}

Result<std::string> TcpNetwork::open(const std::string& listen_address, world::NetworkEvents& events) {
  events_ = &events;
  reception_.emplace(self_, events);
  if (listen_address.empty()) return std::string();
  const Doorway::Calls calls{
      [this](Doorway::Visitor visitor, asio::ip::tcp::socket socket) {
        greet_stranger(visitor, std::move(socket));
      },
      [this](Doorway::Visitor visitor, Doorway::Reason reason) { dismiss(visitor, reason); },
      [this](const std::string& remote, std::optional<Doorway::Reason> reason) {
        turned_away(remote, reason);
      },
      [this](const std::string& why) { on_refused_(event::Cause::own, why); }};
  TW_TRY(auto door, Doorway::open(loop_, listen_address, options_.patience, calls));
  door_ = std::move(door);
  return door_->address();
}

void TcpNetwork::greet_with(Frame hello) { hello_ = std::move(hello); }

void TcpNetwork::connect(const std::string& address) {
  TW_CHECK(events_ != nullptr);
  const bool under_way = std::any_of(handshakes_.begin(), handshakes_.end(), [&address](const auto& entry) {
    const auto& dialed = entry.second.dialed;
    return std::find(dialed.begin(), dialed.end(), address) != dialed.end();
  });
  if (under_way) return;
  const Serial serial = ++last_serial_;
  auto tell = life_.tie([this, serial](Handshake::News news) { on_news(serial, news); });
  Greeted& greeted = handshakes_[serial];
  greeted = {std::make_unique<Handshake>(*reception_, hello_, random_.next(), tell), {address}, loop_.now()};
  limit_time(serial, loop_.now() + kDialTime + options_.patience);
  know(address);
  dial(loop_, options_.tls, address, life_.tie([this, serial](auto stream) {
    if (const auto found = handshakes_.find(serial); found != handshakes_.end()) {
      found->second.handshake->connected(std::move(stream));
    }
  }));
}

/// Connections from there go before those of unknown hosts.
void TcpNetwork::know(const std::string& address) {
  if (door_) door_->know(address);
}

void TcpNetwork::close(PeerId peer) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  const Serial serial = ++last_serial_;
  auto& streams =
      departures_.emplace(serial, Departure{peer, found->second->release()}).first->second.streams;
  retire(std::move(found->second));
  links_.erase(found);
  share_line();
  reception_->close(peer);
  // The data streams stay open until the other side has read the last control message: their end, seen first,
  // would end the link there.
  streams.control->finish(life_.tie([this, serial] { settle(serial); }));
}

void TcpNetwork::settle(Serial departure) {
  const auto found = departures_.find(departure);
  found->second.streams.close();
  past_[found->second.peer] += found->second.streams.bytes();
  departures_.erase(found);
}

void TcpNetwork::send(PeerId to, Frame message) {
  if (message.head.size() > wire::kMaxHeadBytes || message.payload.size() > wire::kMaxPayloadBytes) {
    on_refused_(event::Cause::own,
                fmt::format("a message of {} bytes to peer {} is beyond the limit of a frame: not sent",
                            message.size(), to_string(to)));
    return;
  }
  if (const auto found = links_.find(to); found != links_.end()) found->second->send(std::move(message));
}

void TcpNetwork::pull(PeerId to) {
  if (const auto found = links_.find(to); found != links_.end()) found->second->pull();
}

LinkBytes TcpNetwork::bytes(PeerId peer) const {
  LinkBytes bytes;
  if (const auto found = past_.find(peer); found != past_.end()) bytes += found->second;
  if (const auto found = links_.find(peer); found != links_.end()) bytes += found->second->bytes();
  for (const auto& [serial, departure] : departures_) {
    if (departure.peer == peer) bytes += departure.streams.bytes();
  }
  return bytes;
}

LinkBytes TcpNetwork::total() const {
  LinkBytes bytes = never_linked_;
  for (const auto& [peer, past] : past_) bytes += past;
  for (const auto& [peer, link] : links_) bytes += link->bytes();
  for (const auto& [serial, departure] : departures_) bytes += departure.streams.bytes();
  for (const auto& [serial, greeted] : handshakes_) bytes += greeted.handshake->bytes();
  for (const auto& [serial, extra] : extra_streams_) bytes += extra->bytes();
  return bytes;
}

std::size_t TcpNetwork::data_streams(PeerId peer) const {
  const auto found = links_.find(peer);
  return found == links_.end() ? 0 : found->second->data_streams();
}

void TcpNetwork::greet_stranger(Doorway::Visitor visitor, asio::ip::tcp::socket socket) {
  // owners: see stream.h
  auto stream =
      std::make_shared<Stream>(loop_, channel_over(std::move(socket), loop_, options_.tls, Side::takes));
  const Serial serial = ++last_serial_;
  auto tell = life_.tie([this, serial](Handshake::News news) { on_news(serial, news); });
  auto handshake = std::make_unique<Handshake>(*reception_, hello_, std::move(stream), tell);
  handshakes_[serial] = {std::move(handshake), {}, loop_.now(), visitor};
  limit_time(serial, loop_.now() + options_.patience);
}

void TcpNetwork::dismiss(Doorway::Visitor visitor, Doorway::Reason reason) {
  const auto found = std::ranges::find_if(
      handshakes_, [visitor](const auto& entry) { return entry.second.visitor == visitor; });
  if (found == handshakes_.end()) return;
  auto why = told_as(reason, options_.patience);
  Greeted& greeted = found->second;
  greeted.cause = why.first;
  greeted.handshake->give_up(why.second);
  greeted.handshake->drop();  // without waiting for the other side to leave
}

void TcpNetwork::turned_away(const std::string& remote, std::optional<Doorway::Reason> reason) {
  const auto why = reason ? told_as(*reason, options_.patience)
                          : std::pair(event::Cause::broken, std::string("closed without a message"));
  on_refused_(why.first, remote + ": " + why.second);
}

void TcpNetwork::limit_time(Serial serial, Instant end) {
  loop_.at(end, life_.tie([this, serial] {
    const auto found = handshakes_.find(serial);
    if (found != handshakes_.end()) found->second.handshake->give_up("timed out");
  }));
}

void TcpNetwork::on_news(Serial serial, Handshake::News news) {
  switch (news) {
    case Handshake::News::admitted:
      return on_admitted(serial);
    case Handshake::News::wants_bulk:
      return dial_bulk(serial);
    case Handshake::News::brings_bulk:
      return join_bulk(serial);
    case Handshake::News::open:
      return open_link(serial);
    case Handshake::News::failed:
      return on_failed(serial);
    case Handshake::News::left:
      return forget(serial);
  }
}

void TcpNetwork::on_admitted(Serial serial) {
  const Greeted& greeted = handshakes_.at(serial);
  know(greeted.handshake->remote());
  if (greeted.visitor) door_->leave(*greeted.visitor);
}

void TcpNetwork::dial_bulk(Serial serial) {
  know(handshakes_.at(serial).handshake->remote());
  // Dial the same address that answered: a name may have several hosts.
  dial(loop_, options_.tls, handshakes_.at(serial).handshake->remote(),
       life_.tie([this, serial](auto stream) {
         if (const auto found = handshakes_.find(serial); found != handshakes_.end()) {
           found->second.handshake->take_bulk(std::move(stream));
         }
       }));
}

void TcpNetwork::join_bulk(Serial serial) {
  Handshake& bulk = *handshakes_.at(serial).handshake;
  const auto expecting = std::find_if(handshakes_.begin(), handshakes_.end(), [&bulk](const auto& entry) {
    return entry.second.handshake->expects(bulk.peer(), bulk.nonce());
  });
  if (expecting == handshakes_.end() && link_of(bulk.peer(), bulk.nonce()) != nullptr) {
    join_link({ExtraStream::Side::is_dialed, self_, bulk.nonce()}, bulk.peer(), bulk.release_control());
    return forget(serial);
  }
  if (expecting == handshakes_.end()) return bulk.give_up("brings a bulk stream for no link");
  expecting->second.handshake->take_bulk(bulk.release_control());
  forget(serial);
}

void TcpNetwork::open_link(Serial serial) {
  Handshake& handshake = *handshakes_.at(serial).handshake;
  const PeerId peer = handshake.peer();
  const Frame hello = handshake.hello();
  Link::Streams streams{handshake.release_control(), {handshake.release_bulk()}};
  if (!reception_->open(peer)) {
    // The other side saw the end of the link that is still open here, and this one is its successor: it comes
    // too early, and its dialer learns so from its end.
    never_linked_ += streams.bytes();
    streams.close();
    return forget(serial);
  }
  const Link::Ends ends{peer, handshake.nonce(), handshake.dials(), options_.most_streams};
  const Link::Calls calls{[this, peer](const std::string& why) { lose(peer, why); },
                          [this, peer, nonce = ends.nonce](int more) { dial_streams(peer, nonce, more); }};
  Link& link = *(links_[peer] = std::make_unique<Link>(loop_, ends, std::move(streams), *events_, calls));
  forget(serial);
  share_line();
  events_->on_open(peer, hello);
  link.start();  // not destroyed by on_open: see retire
}

void TcpNetwork::share_line() {
  const auto far = std::ranges::count_if(links_, [](const auto& entry) { return entry.second->is_far(); });
  for (auto& [peer, link] : links_) link->share_with(static_cast<int>(far));
}

Link* TcpNetwork::link_of(PeerId peer, std::uint64_t nonce) {
  const auto found = links_.find(peer);
  return found != links_.end() && found->second->ends().nonce == nonce ? found->second.get() : nullptr;
}

// owners: see stream.h
void TcpNetwork::join_link(const ExtraStream::Tie& tie, PeerId peer, std::shared_ptr<Stream> stream) {
  const Serial serial = ++last_serial_;
  auto done = [this, serial, peer, nonce = tie.nonce](bool accepted) {
    on_joined(serial, peer, nonce, accepted);
  };
  extra_streams_[serial] = std::make_unique<ExtraStream>(tie, std::move(stream), done);
  loop_.at(loop_.now() + options_.patience, life_.tie([this, serial] {
    if (const auto found = extra_streams_.find(serial); found != extra_streams_.end())
      found->second->give_up();
  }));
}

void TcpNetwork::dial_streams(PeerId peer, std::uint64_t nonce, int streams) {
  const Link* link = link_of(peer, nonce);
  for (int i = 0; link != nullptr && i < streams; ++i) {
    dial(loop_, options_.tls, link->remote(), life_.tie([this, peer, nonce](auto stream) {
      Link* there = link_of(peer, nonce);
      if (there == nullptr) return stream ? stream.value()->close() : void();
      if (!stream) return there->not_added();
      join_link({ExtraStream::Side::dials, self_, nonce}, peer, std::move(stream).value());
    }));
  }
}

void TcpNetwork::on_joined(Serial serial, PeerId peer, std::uint64_t nonce, bool accepted) {
  const auto found = extra_streams_.find(serial);
  const auto stream = found->second->release();
  Link* link = link_of(peer, nonce);
  if (link != nullptr && accepted) {
    link->add(stream);
  } else {
    never_linked_ += stream->bytes();
    stream->close();
    if (link != nullptr && link->ends().dialed) link->not_added();
  }
  retire(std::move(found->second));
  extra_streams_.erase(found);
}

void TcpNetwork::on_failed(Serial serial) {
  Greeted& greeted = handshakes_.at(serial);
  const Handshake& handshake = *greeted.handshake;
  if (greeted.visitor) door_->failed(*greeted.visitor);
  const Handshake::Ending ending = handshake.ending();
  if (ending == Handshake::Ending::duplicate) return settle_duplicate(greeted);
  const bool refused =
      ending == Handshake::Ending::refused_here || ending == Handshake::Ending::refused_there;
  for (const std::string& address : std::exchange(greeted.dialed, {})) {
    events_->on_refused(
        address, {refused ? world::DialFailure::Kind::turned_away : world::DialFailure::Kind::unreachable,
                  handshake.why()});
  }
  if (handshake.dials()) return;
  if (ending == Handshake::Ending::refused_there)
    return events_->on_refused(handshake.remote(), {world::DialFailure::Kind::turned_away, handshake.why()});
  const bool nonsense = ending == Handshake::Ending::nonsense;
  if (!nonsense && (refused || handshake.was_admitted())) return;
  if (nonsense) greeted.cause = event::Cause::nonsense;
  if (ending == Handshake::Ending::credential) greeted.cause = event::Cause::credential;
  on_refused_(greeted.cause, handshake.remote() + ": " + handshake.why().words);
}

/// A dial that is the loser of two ends like the winner. One that was begun when the link stood already is
/// refused.
void TcpNetwork::settle_duplicate(Greeted& greeted) {
  const PeerId peer = greeted.handshake->peer();
  const auto link = links_.find(peer);
  if (link != links_.end() && link->second->opened_at() > greeted.since) return;
  const auto winner = std::find_if(handshakes_.begin(), handshakes_.end(), [peer](const auto& entry) {
    return entry.second.handshake->admitted() && entry.second.handshake->peer() == peer;
  });
  auto dialed = std::exchange(greeted.dialed, {});
  if (link == links_.end() && winner != handshakes_.end()) {
    auto& also = winner->second.dialed;
    also.insert(also.end(), dialed.begin(), dialed.end());
    return;
  }
  for (const std::string& address : dialed) {
    events_->on_refused(address,
                        {world::DialFailure::Kind::linked, {"already connected to peer " + peer_name(peer)}});
  }
}

void TcpNetwork::forget(Serial serial) {
  const auto found = handshakes_.find(serial);
  never_linked_ += found->second.handshake->bytes();
  if (found->second.visitor) door_->leave(*found->second.visitor);
  retire(std::move(found->second.handshake));
  handshakes_.erase(found);
}

void TcpNetwork::lose(PeerId peer, const std::string& why) {
  const auto found = links_.find(peer);
  Link::Streams streams = found->second->release();
  streams.close();
  past_[peer] += streams.bytes();
  retire(std::move(found->second));
  links_.erase(found);
  share_line();
  reception_->close(peer);
  events_->on_close(peer, why);
}

void TcpNetwork::retire(std::unique_ptr<StreamUser> gone) {
  retired_.push_back(std::move(gone));
  if (retired_.size() == 1) loop_.post(life_.tie([this] { retired_.clear(); }));
}

}  // namespace tw::host
