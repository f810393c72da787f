// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/write.hpp>
#include <memory>
#include <string>

#include "host/loop.h"

/// For tests.
namespace tw::host {

/// A client of a web server on the same loop, which sends what a test says, byte by byte.
class TestClient {
 public:
  enum class Reads { all, nothing };

  TestClient(Loop& loop, const std::string& url, Reads reads = Reads::all, int receive_buffer = 0)
      : context_(asio::ssl::context::tlsv13_client), tls_(loop.context(), context_), reads_(reads) {
    const bool secure = url.starts_with("https");
    const std::string rest = url.substr(url.find("//") + 2);
    const std::size_t colon = rest.rfind(':');
    auto& socket = tls_.next_layer();
    socket.open(asio::ip::tcp::v4());
    if (receive_buffer > 0) socket.set_option(asio::socket_base::receive_buffer_size(receive_buffer));
    socket.connect({asio::ip::make_address(rest.substr(0, colon)),
                    static_cast<std::uint16_t>(std::stoi(rest.substr(colon + 1)))});
    if (!secure) {
      begin();
      return;
    }
    secure_ = true;
    // owner: the socket's operations, which end before this
    tls_.async_handshake(asio::ssl::stream_base::client, [this](const std::error_code& error) {
      ended = static_cast<bool>(error);
      if (!error) begin();
    });
  }

  ~TestClient() {
    std::error_code ignored;
    tls_.next_layer().close(ignored);
    *gone_ = true;
  }

  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  void send(std::string text) {
    waiting_ += std::move(text);
    if (open_) flush();
  }

  /// Requests it as a browser does.
  void get(const std::string& target, const std::string& more = "") {
    send("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more + "\r\n");
  }

  std::string received;
  bool ended = false;  ///< the other side has closed it

 private:
  void begin() {
    open_ = true;
    if (reads_ == Reads::all) read();
    flush();
  }

  void flush() {
    if (writing_ || waiting_.empty()) return;
    writing_ = true;
    leaving_.swap(waiting_);
    waiting_.clear();
    const auto done = [this, gone = gone_](const std::error_code& error, std::size_t) {
      if (*gone) return;
      writing_ = false;
      if (!error) flush();
    };
    if (secure_) {
      asio::async_write(tls_, asio::buffer(leaving_), done);
    } else {
      asio::async_write(tls_.next_layer(), asio::buffer(leaving_), done);
    }
  }

  void read() {
    const auto done = [this, gone = gone_](const std::error_code& error, std::size_t bytes) {
      if (*gone) return;
      received.append(buffer_.data(), bytes);
      ended = static_cast<bool>(error);
      if (!error) read();
    };
    if (secure_) {
      tls_.async_read_some(asio::buffer(buffer_), done);
    } else {
      tls_.next_layer().async_read_some(asio::buffer(buffer_), done);
    }
  }

  asio::ssl::context context_;
  asio::ssl::stream<asio::ip::tcp::socket> tls_;
  Reads reads_;
  bool secure_ = false, open_ = false, writing_ = false;
  std::string waiting_, leaving_;
  std::array<char, 65536> buffer_{};
  // owners: this and its operations
  std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);
};

}  // namespace tw::host
