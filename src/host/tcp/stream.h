// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "host/loop.h"
#include "host/tcp/channel.h"
#include "host/tcp/framing.h"
#include "host/tcp/stream_user.h"
#include "host/tcp/traffic.h"

namespace tw::host {

/// Whole frames in order over one connection. Sends the preface by itself. Loop thread only.
// owners: whoever uses the stream (Handshake, Link, TcpNetwork) and each operation under way in the kernel,
// whose buffers live in here: a stream is closed, never destroyed, under an operation.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // owner of the channel: the Stream, see channel.h
  Stream(Loop& loop, std::shared_ptr<Channel> channel);

  /// Sets the user of all further events, and of data that already arrived. With nullptr nothing is reported
  /// or read (data waits in the kernel) until the next attach.
  void attach(StreamUser* user);

  void set_limits(FrameLimits limits) { parser_.set_limits(limits); }

  /// It belongs to a link now, as one of its data streams.
  void carry_bulk();

  Duration round_trip() { return channel_->round_trip(); }

  void send(Frame frame);

  /// Bytes given to send that the kernel did not take yet.
  std::size_t queued_bytes() const { return queued_bytes_; }

  /// Ends gracefully: sends the queue, ends its side, discards data until the other side ends too, then
  /// closes and calls done. Closes anyway after two seconds. The user gets no further calls.
  void finish(std::function<void()> done);

  /// Closes at once; without calls, except the done of finish.
  void close();

  LinkBytes bytes() const { return bytes_; }

  /// Bytes sent whose receipt the other side's kernel told.
  std::uint64_t acknowledged() const {
    return state_ == State::closed ? acknowledged_ : channel_->acknowledged();
  }

  /// What ended it; none where its bytes are invalid.
  const std::error_code& error() const { return error_; }

  /// It ended because one side shows no token that holds for the other, or TLS is spoken on one side alone.
  bool lacks_credential() const { return channel_->lacks_credential() || parser_.met_tls(); }

  /// Address of the other end.
  const std::string& remote() const { return channel_->remote(); }

 private:
  enum class State { open, finishing, closed };

  struct Outgoing {
    FrameLengths lengths;
    Frame frame;
  };

  static constexpr std::size_t kGather = 48;  // below the 64 buffers that asio gives to one sendmsg

  void deliver();
  void read();
  void on_read(const std::error_code& error, std::size_t bytes);
  void write();
  std::size_t gather();
  void on_written(const std::error_code& error, std::size_t bytes);
  void drop_written(std::size_t bytes);
  void queue(Outgoing outgoing);
  void end(const std::string& why);
  void end_sending();

  Loop& loop_;
  std::shared_ptr<Channel> channel_;  // owner: see channel.h
  StreamUser* user_ = nullptr;
  State state_ = State::open;
  std::function<void()> on_finished_;

  FrameParser parser_;
  std::array<asio::mutable_buffer, 3> room_{};
  bool reading_ = false;
  std::optional<std::string> ending_;  // why no more bytes can come; told after the frames before it

  std::deque<Outgoing> queue_;
  std::size_t front_written_ = 0;  // bytes of queue_.front() that the kernel took
  std::size_t queued_bytes_ = 0;
  std::array<asio::const_buffer, kGather> gathered_{};
  bool writing_ = false;

  LinkBytes bytes_;
  std::uint64_t acknowledged_ = 0;  // once it is closed
  std::error_code error_;
};

}  // namespace tw::host
