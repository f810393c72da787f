// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/error.hpp>
#include <chrono>
#include <utility>

#include "host/address.h"
#include "host/loop.h"
#include "host/tcp/stream.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kControlQueueBytes = 8 << 20;

// Enough to keep a connection busy while the next message is made, little enough that one made late is sent
// soon.
constexpr std::size_t kBulkQueueBytes = 512 << 10;
constexpr std::size_t kLeastQueueBytes = 256 << 10;

constexpr Duration kWatch = 100ms;
constexpr Duration kDialAgain = 5s;  // doubles with each stream that was not added
constexpr Duration kDialAgainMost = 5min;

/// Less than the kernel waits for the receipt of data (Channel::prepare_for_bulk), more than a peer is
/// silent.
constexpr Duration kControlAlive = 10s;

/// TLS and greetings of one stream, in small packets.
constexpr std::uint64_t kOpeningBytes = 16 << 10;

/// A path whose MTU is smaller than that of the interfaces, on which no ICMP message says so.
std::string advice_on_mtu(const std::string& remote) {
  const auto address = parse_address(remote);
  return fmt::format(
      "; control messages arrive and data does not: packets above the MTU of the path may be lost (VPN, "
      "tunnel, peering). Try ping -M do -s 1400 {}, and a smaller MTU: ip link set dev INTERFACE mtu 1400",
      address ? address.value().host : remote);
}

}  // namespace

void Link::Streams::close() {
  control->close();
  for (const auto& stream : bulk) stream->close();
}

LinkBytes Link::Streams::bytes() const {
  LinkBytes bytes = control->bytes();
  for (const auto& stream : bulk) bytes += stream->bytes();
  return bytes;
}

Link::Link(Loop& loop, const Ends& ends, Streams streams, world::NetworkEvents& events, Calls calls)
    : loop_(loop),
      ends_(ends),
      opened_at_(loop.now()),
      heard_at_(loop.now()),
      streams_(std::move(streams)),
      events_(events),
      calls_(std::move(calls)),
      dial_again_(kDialAgain),
      count_(streams_.control->round_trip(), ends.most_streams),
      allowance_(streams_.control->round_trip()) {
  streams_.control->set_limits(FrameLimits{});
  for (const auto& stream : streams_.bulk) stream->carry_bulk();
}

void Link::start() {
  if (state_ != State::open) return;
  streams_.control->attach(this);
  for (const auto& stream : streams_.bulk) stream->attach(this);
  want_streams();
  pump();
}

// owners: see Streams
void Link::add(std::shared_ptr<Stream> bulk) {
  dialing_ = std::max(0, dialing_ - 1);
  if (state_ != State::open || data_streams() >= StreamCount::kMost) return bulk->close();
  dial_again_ = kDialAgain;
  bulk->carry_bulk();
  streams_.bulk.push_back(std::move(bulk));
  streams_.bulk.back()->attach(this);
  pump();
}

void Link::not_added() {
  dial_again_ = std::min(2 * dial_again_, kDialAgainMost);
  loop_.at(loop_.now() + dial_again_, life_.tie([this] {
    dialing_ = std::max(0, dialing_ - 1);
    want_streams();
  }));
}

void Link::want_streams() {
  if (state_ != State::open) return;
  if (!ends_.dialed) {
    if (count_.wanted() > told_) {
      told_ = count_.wanted();
      send(encode_link_word({LinkWord::Kind::streams, static_cast<std::uint64_t>(told_)}));
    }
    return;
  }
  const int missing = std::max(count_.wanted(), they_want_) - static_cast<int>(data_streams()) - dialing_;
  if (missing <= 0) return;
  dialing_ += missing;
  loop_.post(life_.tie([this, missing] { calls_.dial(missing); }));
}

void Link::send(Frame message) {
  if (state_ != State::open) return;
  streams_.control->send(std::move(message));
  if (streams_.control->queued_bytes() <= kControlQueueBytes) return;
  break_off(fmt::format("it leaves more than {} MiB of control messages unread", kControlQueueBytes >> 20));
}

void Link::break_off(std::string why) {
  state_ = State::breaking;
  streams_.close();
  loop_.post(life_.tie([this, why = std::move(why)] {
    if (state_ == State::breaking) calls_.lost(why);
  }));
}

void Link::pull() {
  if (std::exchange(pulling_, true)) return;
  loop_.post(life_.tie([this] { pump(); }));
}

void Link::pump() {
  while (state_ == State::open && pulling_) {
    if (!credit_.may_send()) {
      ran_dry_ = true;
      return;
    }
    Stream& stream = roomiest();
    if (stream.queued_bytes() >= room_of_each()) return watch();
    pulling_ = false;  // a pull from inside next_bulk counts
    auto message = events_.next_bulk(ends_.peer);
    if (!message || state_ != State::open) {
      ran_dry_ = true;
      return;
    }
    pulling_ = true;
    credit_.on_sent(message->size());
    stream.send(*std::move(message));
  }
}

int Link::in_use() const { return std::min(static_cast<int>(data_streams()), count_.wanted()); }

Stream& Link::roomiest() const {
  const auto& bulk = streams_.bulk;
  return **std::min_element(bulk.begin(), bulk.begin() + in_use(), [](const auto& a, const auto& b) {
    return a->queued_bytes() < b->queued_bytes();
  });
}

std::size_t Link::room_of_each() const {
  return std::max(kLeastQueueBytes, kBulkQueueBytes / static_cast<std::size_t>(in_use()));
}

void Link::watch() {
  if (std::exchange(watching_, true)) return;
  ran_dry_ = false;
  loop_.at(loop_.now() + kWatch, life_.tie([this, since = loop_.now(), sent = bulk_sent()] {
    watching_ = false;
    if (state_ == State::open) judge_streams(since, sent);
  }));
}

void Link::judge_streams(Instant since, std::uint64_t sent) {
  if (ran_dry_) return;
  count_.on_round_trip(streams_.control->round_trip());
  count_.on_saturated(loop_.now() - since, bulk_sent() - sent);
  want_streams();
  pump();
}

std::uint64_t Link::bulk_sent() const { return bytes().sent - streams_.control->bytes().sent; }

Link::Streams Link::release() {
  state_ = State::released;
  if (streams_.control) streams_.control->attach(nullptr);
  for (const auto& stream : streams_.bulk) stream->attach(nullptr);
  return std::exchange(streams_, Streams{});
}

const std::string& Link::remote() const { return streams_.control->remote(); }

void Link::on_frame(Stream& stream, Frame frame) {
  if (&stream != streams_.control.get()) return consume(std::move(frame));
  heard_at_ = loop_.now();
  if (is_link_word(frame)) return hear(frame);
  events_.on_message(ends_.peer, std::move(frame));
}

void Link::hear(const Frame& frame) {
  const auto word = decode_link_word(frame);
  if (!word) return break_off("it " + word.error().message);
  switch (word.value().kind) {
    case LinkWord::Kind::grant:
      credit_.on_grant(word.value().value);
      return pump();
    case LinkWord::Kind::streams:
      they_want_ = static_cast<int>(std::min<std::uint64_t>(word.value().value, StreamCount::kMost));
      return want_streams();
  }
}

void Link::consume(Frame frame) {
  const std::size_t bytes = frame.size();
  events_.on_message(ends_.peer, std::move(frame));
  if (state_ != State::open) return;
  if (const auto limit = allowance_.on_consumed(loop_.now(), bytes))
    send(encode_link_word({LinkWord::Kind::grant, *limit}));
}

void Link::on_room(Stream& stream) {
  if (&stream != streams_.control.get()) pump();
}

void Link::on_end(Stream& stream, const std::string& why) {
  if (state_ != State::open) return;
  calls_.lost(loses_large_packets(stream) ? why + advice_on_mtu(remote()) : why);
}

/// The kernel sent data of this stream again and again, and nothing of it was received, while the other side
/// spoke on the control stream. No data ever got through: a firewall forgets connections that did carry some.
bool Link::loses_large_packets(const Stream& stream) const {
  if (&stream == streams_.control.get() || stream.error() != asio::error::timed_out) return false;
  std::uint64_t acknowledged = 0;
  for (const auto& each : streams_.bulk) acknowledged += each->acknowledged();
  return acknowledged <= streams_.bulk.size() * kOpeningBytes && loop_.now() - heard_at_ < kControlAlive;
}

}  // namespace tw::host
