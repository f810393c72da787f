// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tw::host {

class Loop;

/// Accepts connections at all times, at most 4,000 a second: a flood of them costs a fifth of a core
/// (measured: 2,000 a second 11 %), and a connection behind a full queue of the kernel (4,096) waits a
/// second.
class Listener {
 public:
  using Accepted = std::function<void(asio::ip::tcp::socket)>;

  /// The process has no descriptor left, or no memory for one more. True: one was freed, so the next
  /// connection can be accepted.
  using Exhausted = std::function<bool(const std::error_code& why)>;

  /// "host:port"; port 0 picks a free one. Resolves a host name, blocking. Calls come from the loop.
  static Result<std::unique_ptr<Listener>> open(Loop& loop, const std::string& address, Accepted accepted,
                                                Exhausted exhausted);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Where others reach this listener. When listening on all interfaces, it is an address of the first one
  /// that is up and not the loopback, if there is one.
  const std::string& address() const { return address_; }

 private:
  struct Socket;
  Listener(Loop& loop, std::unique_ptr<Socket> socket, Accepted accepted, Exhausted exhausted);

  void accept();
  void accept_later(Instant when);
  void go_on_after(const std::error_code& error);

  Loop& loop_;
  std::unique_ptr<Socket> socket_;
  Accepted accepted_;
  Exhausted exhausted_;
  std::string address_;
  Instant window_{};  // beginning of the present second
  int in_window_ = 0;
};

}  // namespace tw::host
