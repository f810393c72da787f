// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/dial.h"

#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <utility>

#include "host/address.h"
#include "host/loop.h"
#include "host/tcp/socket_error.h"
#include "host/tcp/stream.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

constexpr Duration kPatience = 10s;

/// One dial under way.
// owners: its pending operations; the last one to end ends it
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(Loop& loop, const Tls* tls, Dialed done)
      : loop_(loop), tls_(tls), done_(std::move(done)), resolver_(loop.context()), socket_(loop.context()) {}

  void start(const Address& address) {
    loop_.at(loop_.now() + kPatience, [attempt = weak_from_this()] {
      if (const auto self = attempt.lock()) self->fail(asio::error::timed_out);
    });
    std::error_code not_a_number;
    const auto number = asio::ip::make_address(address.host, not_a_number);
    if (!not_a_number) return connect(std::array{tcp::endpoint(number, address.port)});
    resolver_.async_resolve(
        address.host, std::to_string(address.port),
        [self = shared_from_this()](const std::error_code& error, const tcp::resolver::results_type& found) {
          if (error) return self->fail(error);
          self->connect(found);
        });
  }

 private:
  void connect(const auto& endpoints) {
    if (!done_) return;
    // async_connect says "operation aborted" where there is no descriptor for a socket.
    std::error_code why;
    socket_.open(tcp::v4(), why);
    if (why == asio::error::no_descriptors) return fail(why);
    socket_.close(why);
    asio::async_connect(socket_, endpoints,
                        [self = shared_from_this()](const std::error_code& error, const auto&) {
                          if (error) return self->fail(error);
                          self->succeed();
                        });
  }

  void fail(const std::error_code& error) {
    if (!done_) return;
    std::error_code ignored;  // no operation under way on this socket is awaited
    socket_.close(ignored);
    resolver_.cancel();
    std::exchange(done_, nullptr)(Error{in_words(error)});
  }

  void succeed() {
    if (!done_) return;
    // owners: see stream.h
    std::exchange(done_, nullptr)(
        std::make_shared<Stream>(loop_, channel_over(std::move(socket_), loop_, tls_, Side::dials)));
  }

  Loop& loop_;
  const Tls* tls_;
  Dialed done_;  // empty once it was called
  tcp::resolver resolver_;
  tcp::socket socket_;
};

}  // namespace

void dial(Loop& loop, const Tls* tls, const std::string& address, Dialed done) {
  const auto parsed = parse_address(address);
  if (!parsed) {
    loop.post([done = std::move(done), error = parsed.error()] { done(error); });
    return;
  }
  // owners: see Attempt
  std::make_shared<Attempt>(loop, tls, std::move(done))->start(parsed.value());
}

}  // namespace tw::host
