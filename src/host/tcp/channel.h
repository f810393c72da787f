// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/time.h"
#include "host/tcp/fork_guard.h"

namespace tw::host {

/// The bytes of one connection: a socket, or TLS over one. One read and one write at a time; calls and
/// answers on the loop thread, no answer from inside a call. Buffers, and the list of them, stay until the
/// answer.
class Channel {
 public:
  using Done = std::function<void(const std::error_code& error, std::size_t bytes)>;

  /// Sets the options of every connection.
  explicit Channel(asio::ip::tcp::socket& socket);
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Address of the other end.
  const std::string& remote() const { return remote_; }

  /// The least recent round trip that the kernel measured on this connection; 0 if it does not tell. While it
  /// is open.
  Duration round_trip();

  /// Bytes sent whose receipt the other side's kernel told, those of TLS among them. Before close.
  std::uint64_t acknowledged() const;

  /// For a data stream of a link, while it is open: little data waits in the kernel, so that later data can
  /// overtake it on another stream. Over a distance the kernel paces, within this machine it does not.
  void prepare_for_bulk();

  /// Answers with at least one byte, put into the buffers in their order, or an error; eof when the other
  /// side has ended in order.
  virtual void read_some(std::span<const asio::mutable_buffer> to, Done done) = 0;

  /// Answers when the kernel has taken at least one byte, with the number of bytes taken.
  virtual void write_some(std::span<const asio::const_buffer> from, Done done) = 0;

  /// Call after the last write.
  virtual void end_sending() = 0;

  /// Closes at once; operations under way get an error.
  virtual void close() = 0;

  /// An error of this channel for people, in lower case.
  virtual std::string in_words(const std::error_code& error) const = 0;

  /// Its error is that one side has no credential that holds for the other.
  virtual bool lacks_credential() const { return false; }

 protected:
  /// Before the socket is closed.
  void release_guard() { guard_.release(); }

 private:
  int descriptor_;
  ForkGuard guard_;
  bool same_machine_;  ///< both ends
  std::string remote_;
  Duration round_trip_;  ///< value of the last query
};

class Loop;
class Tls;

enum class Side { dials, takes };

/// TLS over the socket (host/tcp/channel_tls.h), or without a tls the socket itself.
// owners: see the two below
std::shared_ptr<Channel> channel_over(asio::ip::tcp::socket socket, Loop& loop, const Tls* tls, Side side);

/// The socket itself.
// owner: the Stream; channels of TLS are also held by their operations under way
std::shared_ptr<Channel> plain_channel(asio::ip::tcp::socket socket);

}  // namespace tw::host
