// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace tw {

class Loop;
class Stream;
class Tls;

/// Takes connections in, one per call of accept.
class Listener {
 public:
  // owners of the stream: whoever takes it from the call, see stream.h
  using Accepted = std::function<void(std::shared_ptr<Stream>)>;

  /// "host:port"; port 0 picks a free one. Resolves a host name, blocking. TLS shakes hands when a stream is
  /// used; without a tls there is none.
  static Result<std::unique_ptr<Listener>> open(Loop& loop, const Tls* tls, const std::string& address,
                                                Accepted accepted);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Where others reach this listener. Listening on all interfaces, it is an address of the first one that is
  /// up and not the loopback, if there is one.
  const std::string& address() const { return address_; }

  /// Calls accepted with the next connection; once, however often it is called meanwhile.
  void accept();

 private:
  struct Socket;
  Listener(Loop& loop, const Tls* tls, std::unique_ptr<Socket> socket, Accepted accepted);

  Loop& loop_;
  const Tls* tls_;
  std::unique_ptr<Socket> socket_;
  Accepted accepted_;
  std::string address_;
  bool accepting_ = false;
};

}  // namespace tw
