// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "host/lifeline.h"
#include "host/tcp/credit.h"
#include "host/tcp/link_word.h"
#include "host/tcp/stream_count.h"
#include "host/tcp/stream_user.h"
#include "host/tcp/traffic.h"
#include "world/network.h"

namespace tw::host {

class Loop;

/// An open link: control messages over one stream, bulk messages over 1 to 64 others, whichever has room,
/// until one of the streams ends. Their rate decides their number (stream_count.h), the receiver the bytes
/// under way (credit.h).
class Link : public StreamUser {
 public:
  // owners: the Link, and after it whoever lets the streams leave; see stream.h
  struct Streams {
    std::shared_ptr<Stream> control;            // owners: as above
    std::vector<std::shared_ptr<Stream>> bulk;  // owners: as above

    void close();
    LinkBytes bytes() const;
  };

  struct Ends {
    PeerId peer;
    std::uint64_t nonce = 0;  ///< ties streams to this link
    bool dialed = false;      ///< by this end, which alone can dial more streams
    int most_streams = StreamCount::kMost;
  };

  /// Called from the loop, never from inside a call of Link.
  struct Calls {
    std::function<void(const std::string& why)> lost;  ///< once at most
    std::function<void(int streams)> dial;  ///< each ends in add or not_added; only at the end that dialed
  };

  Link(Loop& loop, const Ends& ends, Streams streams, world::NetworkEvents& events, Calls calls);

  /// Starts the events, unless the link has ended.
  void start();

  /// One more data stream; it is closed if there are enough.
  void add(std::shared_ptr<Stream> bulk);  // owners: see Streams
  void not_added();

  /// Lost follows when the other side leaves more than 8 MiB of control messages unread.
  void send(Frame message);

  /// There may be bulk messages again: next_bulk is asked soon.
  void pull();

  /// Ends the link: no further events.
  Streams release();

  const Ends& ends() const { return ends_; }

  Instant opened_at() const { return opened_at_; }

  /// Address of the other end.
  const std::string& remote() const;

  LinkBytes bytes() const { return streams_.bytes(); }

  std::size_t data_streams() const { return streams_.bulk.size(); }

  bool is_far() const { return count_.is_far(); }

  /// See StreamCount.
  void share_with(int far_links) {
    count_.share_with(far_links);
    want_streams();
  }

  void on_frame(Stream& stream, Frame frame) override;
  void on_room(Stream& stream) override;
  void on_end(Stream& stream, const std::string& why) override;

 private:
  enum class State { open, breaking, released };

  void pump();
  Stream& roomiest() const;
  std::size_t room_of_each() const;
  int in_use() const;
  void watch();
  void judge_streams(Instant since, std::uint64_t sent);
  std::uint64_t bulk_sent() const;
  void want_streams();
  void hear(const Frame& frame);
  void consume(Frame frame);
  void break_off(std::string why);
  bool loses_large_packets(const Stream& stream) const;

  Loop& loop_;
  Ends ends_;
  Instant opened_at_;
  Instant heard_at_;  ///< the last control message
  Streams streams_;
  world::NetworkEvents& events_;
  Calls calls_;
  State state_ = State::open;
  bool pulling_ = true;    // since the last pull, next_bulk always had a message
  bool watching_ = false;  // whether the streams are the bottleneck
  bool ran_dry_ = false;   // while watching: something else was the bottleneck
  Duration dial_again_;
  StreamCount count_;
  int told_ = 1;  // data streams that the dialer was asked for
  int they_want_ = 1;
  int dialing_ = 0;
  Credit credit_;
  Allowance allowance_;
  Lifeline life_;
};

}  // namespace tw::host
