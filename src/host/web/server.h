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
  /// Connections that have asked for something and may; one more closes the oldest of the host with most.
  std::size_t most_viewers = 512;
  Duration request =
      std::chrono::seconds(10);               ///< for the handshake; for a request, from the one before it on
  Duration write = std::chrono::seconds(10);  ///< for the client to read an answer or an event
  Duration silence = std::chrono::seconds(15);  ///< a follower without events gets an empty line
};

struct WebOptions {
  std::string address;               ///< HOST:PORT; port 0: any free one
  std::vector<std::string> names{};  ///< further names of this server in browsers
  /// A token of the run: the server uses TLS and admits only holders of tokens. Nothing: only on this
  /// machine.
  std::optional<wire::Token> token{};
  WebLimits limits{};
};

/// A read-only web server: GET and HEAD over HTTP/1.1, at most 80 KiB of request line and headers, 500
/// headers and no body, one request at a time on a connection. WebGuard refuses strangers first. On the loop
/// thread, with no thread of its own; the loop outlives it.
class WebServer {
 public:
  using Answerer = std::function<WebAnswer(const WebRequest&)>;

  /// The error names the address and the remedy.
  static Result<std::unique_ptr<WebServer>> open(Loop& loop, WebOptions options, Answerer answerer);

  /// Closes all connections.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  /// "http://127.0.0.1:8080/"
  const std::string& url() const;

  /// For clients, because no authority signs the certificate (WebCertificate::pin). Empty: without TLS.
  std::string pin() const;

  /// Sends an event of Server-Sent Events, with its id, to all followers. A follower that has not read the
  /// previous event gets the newest one after it; those between are dropped. A follower gets no event twice,
  /// nor the event that it names as its last one. Consecutive ids differ.
  /// An empty event: there is none any more, also for those who come later.
  /// Answers those who wait for the next event, too.
  void publish(const std::string& id, std::string event);

  /// Those who wait for the next event, too.
  std::size_t followers() const;

  /// The last event is sent to all of these, as far as the system takes it.
  bool flushed() const;

 private:
  struct Kernel;
  // owner: this server; calls under way hold it weakly
  explicit WebServer(std::shared_ptr<Kernel> kernel);

  std::shared_ptr<Kernel> kernel_;  // owner: see above
};

}  // namespace tw::host
