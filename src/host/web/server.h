// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/web/message.h"
#include "wire/token.h"

namespace tw::host {

class Loop;

struct WebLimits {
  std::size_t most_connections = 256;  ///< one more is closed at once
  Duration request =
      std::chrono::seconds(10);               ///< for the handshake; for a request, from the one before it on
  Duration write = std::chrono::seconds(10);  ///< for an answer or an event to be taken
  Duration silence = std::chrono::seconds(15);  ///< a follower who hears nothing gets an empty line
};

struct WebOptions {
  std::string address;               ///< HOST:PORT; port 0: any free one
  std::vector<std::string> names{};  ///< by which browsers may call this server, besides
  /// A token of the run: TLS, and only holders of its tokens are let in. Nothing: only on this machine.
  std::optional<wire::Token> token{};
  WebLimits limits{};
};

/// A web server that shows, and takes nothing: GET and HEAD over HTTP/1.1, at most 80 KiB of request line and
/// headers, no body, one request at a time on a connection. WebGuard turns strangers away first. On the loop
/// thread, with no thread of its own; the loop outlives it.
class WebServer {
 public:
  using Answerer = std::function<WebAnswer(const WebRequest&)>;

  /// The error names the address, and what is to be done.
  static Result<std::unique_ptr<WebServer>> open(Loop& loop, WebOptions options, Answerer answerer);

  /// Closes all connections.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  /// "http://127.0.0.1:8080/"
  const std::string& url() const;

  /// For clients that know no authority which would vouch for the certificate (WebCertificate::pin). Empty:
  /// without TLS.
  std::string pin() const;

  /// Sends an event of Server-Sent Events, with its id, to all who follow. A follower who has not taken the
  /// one before yet is sent the newest one once it has; those between are dropped. No event is sent twice to
  /// one follower, nor one to a follower who says that it was its last one. Ids differ from the one before.
  void publish(const std::string& id, std::string event);

  std::size_t followers() const;

 private:
  struct Kernel;
  // owner: this server; calls under way hold it weakly
  explicit WebServer(std::shared_ptr<Kernel> kernel);

  std::shared_ptr<Kernel> kernel_;  // owner: see above
};

}  // namespace tw::host
