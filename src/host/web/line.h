// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "host/tcp/fork_guard.h"

namespace tw::host {

class WebConnection;

/// The connections of one web server that are open.
struct WebRoom {
  std::set<WebConnection*> connections;
  std::function<void(const WebConnection&)> left;  ///< one of them ends
};

/// The other end of a connection.
struct WebVisit {
  std::uint64_t visitor = 0;  ///< Doorway::Visitor; the later the larger
  std::string remote;         ///< "host:port"
  std::string host;           ///< sharing_host()
  bool admitted = false;      ///< it has asked for something, and may
  std::uint64_t number = 0;   ///< of RESTinio
};

/// A socket, or TLS over one.
class WebConnection {
 public:
  // owners of the room: the server and its connections
  WebConnection(asio::ip::tcp::socket socket, asio::ssl::context* tls, WebVisit from,
                std::shared_ptr<WebRoom> room)  // owners: see above
      : visit(std::move(from)),
        socket_(std::move(socket)),
        guard_(socket_.native_handle()),
        room_(std::move(room)) {
    if (tls != nullptr) tls_.emplace(socket_, *tls);
    room_->connections.insert(this);
  }

  ~WebConnection() {
    room_->connections.erase(this);
    if (room_->left) room_->left(*this);
  }

  WebConnection(const WebConnection&) = delete;
  WebConnection& operator=(const WebConnection&) = delete;

  WebVisit visit;

  asio::ip::tcp::socket& socket() { return socket_; }

  std::optional<asio::ssl::stream<asio::ip::tcp::socket&>>& tls() { return tls_; }

  bool is_open() const { return socket_.is_open(); }

  /// Operations under way end with an error.
  void close() {
    guard_.release();
    std::error_code ignored;  // close gives the descriptor back whatever it reports
    socket_.close(ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
  ForkGuard guard_;
  std::optional<asio::ssl::stream<asio::ip::tcp::socket&>> tls_;
  std::shared_ptr<WebRoom> room_;  // owners: see the constructor
};

/// The socket type of RESTinio, with asio's names. It works with and without TLS, so that one server is
/// enough.
class WebLine {
 public:
  using executor_type = asio::ip::tcp::socket::executor_type;

  // owner of the connection: this line alone
  WebLine(std::unique_ptr<WebConnection> connection, std::chrono::steady_clock::duration patience)
      : connection_(std::move(connection)), patience_(patience) {}

  executor_type get_executor() { return connection_->socket().get_executor(); }

  auto& lowest_layer() { return connection_->socket(); }

  bool is_open() const { return connection_->socket().is_open(); }

  void cancel(std::error_code& error) { connection_->socket().cancel(error); }

  void shutdown(asio::ip::tcp::socket::shutdown_type what, std::error_code& error) {
    connection_->socket().shutdown(what, error);
  }

  void close() { connection_->close(); }

  template <class Buffers, class Done>
  void async_read_some(const Buffers& to, Done&& done) {
    if (connection_->tls()) {
      connection_->tls()->async_read_some(to, std::forward<Done>(done));
    } else {
      connection_->socket().async_read_some(to, std::forward<Done>(done));
    }
  }

  template <class Buffers, class Done>
  void async_write_some(const Buffers& from, Done&& done) {
    if (connection_->tls()) {
      connection_->tls()->async_write_some(from, std::forward<Done>(done));
    } else {
      connection_->socket().async_write_some(from, std::forward<Done>(done));
    }
  }

  /// The handshake, where there is one, for as long as patience lasts; then one of the two.
  template <class Connection, class Begin, class Failed>
  void shake_hands(Connection& owner, Begin begin, Failed failed) {
    if (!connection_->tls()) return begin();
    // owners: the two waits
    auto limit = std::make_shared<asio::steady_timer>(get_executor(), patience_);
    limit->async_wait([weak = std::weak_ptr(owner.shared_from_this()), this](const std::error_code& error) {
      if (!error && !weak.expired()) connection_->close();
    });
    connection_->tls()->async_handshake(
        asio::ssl::stream_base::server,
        [limit, begin, failed, owner = owner.shared_from_this()](const std::error_code& error) {
          limit->cancel();
          if (error) return failed(error);
          begin();
        });
  }

 private:
  std::unique_ptr<WebConnection> connection_;
  std::chrono::steady_clock::duration patience_;
};

}  // namespace tw::host
