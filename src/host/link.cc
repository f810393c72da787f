// SPDX-License-Identifier: Apache-2.0
#include "host/link.h"

#include <fmt/format.h>

#include <utility>

#include "host/loop.h"
#include "host/stream.h"

namespace tw {
namespace {

constexpr std::size_t kControlQueueBytes = 8 << 20;

// Enough to keep a connection busy while the next message is made, little enough that one made late is sent
// soon.
constexpr std::size_t kBulkQueueBytes = 1 << 20;

}  // namespace

Link::Link(Loop& loop, PeerId peer, Streams streams, NetworkEvents& events, Lost lost)
    : loop_(loop),
      peer_(peer),
      opened_at_(loop.now()),
      streams_(std::move(streams)),
      events_(events),
      lost_(std::move(lost)) {
  streams_.control->set_limits(FrameLimits{});
  streams_.bulk->set_limits(FrameLimits{});
}

void Link::start() {
  if (state_ != State::open) return;
  streams_.control->attach(this);
  streams_.bulk->attach(this);
  pump();
}

void Link::send(Frame message) {
  if (state_ != State::open) return;
  streams_.control->send(std::move(message));
  if (streams_.control->queued_bytes() <= kControlQueueBytes) return;
  break_off(fmt::format("it leaves more than {} MiB of control messages unread", kControlQueueBytes >> 20));
}

void Link::break_off(std::string why) {
  state_ = State::breaking;
  streams_.control->close();
  streams_.bulk->close();
  loop_.post(life_.tie([this, why = std::move(why)] {
    if (state_ == State::breaking) lost_(why);
  }));
}

void Link::pull() {
  if (std::exchange(pulling_, true)) return;
  loop_.post(life_.tie([this] { pump(); }));
}

void Link::pump() {
  while (state_ == State::open && pulling_ && streams_.bulk->queued_bytes() < kBulkQueueBytes) {
    pulling_ = false;  // a pull from inside next_bulk counts
    auto message = events_.next_bulk(peer_);
    if (!message || state_ != State::open) return;
    pulling_ = true;
    streams_.bulk->send(*std::move(message));
  }
}

Link::Streams Link::release() {
  state_ = State::released;
  if (streams_.control) streams_.control->attach(nullptr);
  if (streams_.bulk) streams_.bulk->attach(nullptr);
  return std::exchange(streams_, Streams{});
}

LinkBytes Link::bytes() const {
  LinkBytes bytes = streams_.control->bytes();
  bytes += streams_.bulk->bytes();
  return bytes;
}

void Link::on_frame(Stream&, Frame frame) { events_.on_message(peer_, std::move(frame)); }

void Link::on_room(Stream& stream) {
  if (&stream == streams_.bulk.get()) pump();
}

void Link::on_end(Stream&, const std::string& why) {
  if (state_ == State::open) lost_(why);
}

}  // namespace tw
