// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "base/blob.h"
#include "base/check.h"
#include "host/address.h"
#include "host/tcp/framing.h"

// For tests: any host that may connect.

namespace tw::host {

/// A bare socket that sends whatever a test says.
class Stranger {
 public:
  /// From 127.0.0.host.
  explicit Stranger(const std::string& address, std::uint32_t host = 1)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl((127U << 24) + host);
    TW_CHECK(::bind(socket_, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(parse_address(address).value().port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TW_CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }

  /// The socket of an incoming connection.
  explicit Stranger(int socket) : socket_(socket) {}

  ~Stranger() {
    if (socket_ >= 0) ::close(socket_);
  }

  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(std::span<const std::byte> bytes) {
    ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void say(const std::string& text) { say(std::as_bytes(std::span(text))); }

  void say(const Frame& frame) {
    say(lengths_of(frame));
    say(frame.head.bytes());
    say(frame.payload.bytes());
  }

  /// Reads what arrived; true once the other side has ended.
  bool ended() {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
      heard_.append(bytes, static_cast<std::size_t>(got));
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  /// Ends its side in order.
  void finish() { ::shutdown(socket_, SHUT_WR); }

  /// Ends with a reset.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(socket_, -1));
  }

  int descriptor() const { return socket_; }

  const std::string& heard() {
    ended();
    return heard_;
  }

 private:
  int socket_;
  std::string heard_;
};

}  // namespace tw::host
