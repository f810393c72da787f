// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.h"
#include "host/lifeline.h"
#include "host/stream_user.h"
#include "host/traffic.h"
#include "world/network.h"

namespace tw {

class Loop;

/// An open link: messages in and out over its control and its bulk stream, until one of them ends.
class Link : public StreamUser {
 public:
  // owners: the Link, and after it whoever lets the streams leave; see stream.h
  struct Streams {
    std::shared_ptr<Stream> control;  // owners: as above
    std::shared_ptr<Stream> bulk;     // owners: as above
  };

  /// Lost is called once at most, from the loop, never from inside a call of Link.
  using Lost = std::function<void(const std::string& why)>;

  Link(Loop& loop, PeerId peer, Streams streams, NetworkEvents& events, Lost lost);

  /// From now on events come, unless the link ended before.
  void start();

  /// Lost follows when the other side leaves more than 8 MiB of control messages unread.
  void send(Frame message);

  /// There may be bulk messages again: next_bulk is asked soon.
  void pull();

  /// The end: no event from now on.
  Streams release();

  PeerId peer() const { return peer_; }

  Instant opened_at() const { return opened_at_; }

  LinkBytes bytes() const;

  void on_frame(Stream& stream, Frame frame) override;
  void on_room(Stream& stream) override;
  void on_end(Stream& stream, const std::string& why) override;

 private:
  enum class State { open, breaking, released };

  void pump();
  void break_off(std::string why);

  Loop& loop_;
  PeerId peer_;
  Instant opened_at_;
  Streams streams_;
  NetworkEvents& events_;
  Lost lost_;
  State state_ = State::open;
  bool pulling_ = true;  // since the last pull, next_bulk was not answered with nothing
  Lifeline life_;
};

}  // namespace tw
