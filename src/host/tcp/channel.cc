// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/channel.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "host/address.h"
#include "host/tcp/channel_tls.h"
#include "host/tcp/round_trip.h"
#include "host/tcp/socket_error.h"
#include "host/tcp/stream_count.h"

namespace tw::host {
namespace {

std::string remote_of(const asio::ip::tcp::socket& socket) {
  std::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return "(gone)";
  return to_string(Address{endpoint.address().to_string(), endpoint.port()});
}

bool ends_here(const asio::ip::tcp::socket& socket) {
  std::error_code gone;  // then it makes no difference
  return socket.remote_endpoint(gone).address() == socket.local_endpoint(gone).address();
}

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(asio::ip::tcp::socket socket) : Channel(socket), socket_(std::move(socket)) {}

  void read_some(std::span<const asio::mutable_buffer> to, Done done) override {
    socket_.async_read_some(to, std::move(done));
  }

  void write_some(std::span<const asio::const_buffer> from, Done done) override {
    socket_.async_write_some(from, std::move(done));
  }

  void end_sending() override {
    std::error_code ignored;  // a broken socket ends the read that is under way
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }

  void close() override {
    release_guard();
    std::error_code ignored;  // close gives the descriptor back whatever it reports
    socket_.close(ignored);
  }

  std::string in_words(const std::error_code& error) const override { return host::in_words(error); }

 private:
  asio::ip::tcp::socket socket_;
};

}  // namespace

Channel::Channel(asio::ip::tcp::socket& socket)
    : descriptor_(socket.native_handle()),
      guard_(descriptor_),
      same_machine_(ends_here(socket)),
      remote_(remote_of(socket)),
      round_trip_(least_round_trip(descriptor_).value_or(Duration{})) {
  std::error_code ignored;  // a socket that is dead already says so to the first read
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
}

Duration Channel::round_trip() {
  round_trip_ = least_round_trip(descriptor_).value_or(round_trip_);
  return round_trip_;
}

std::uint64_t Channel::acknowledged() const { return acknowledged_bytes(descriptor_); }

void Channel::prepare_for_bulk() {
  // Where one is unknown, all works without it, slower or later.
  const auto set = [this](int level, int option, int value) {
    (void)::setsockopt(descriptor_, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, 256 << 10);
  // Data streams may be idle for long: a router on the way must not forget them, and if it did, it must show.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
  if (same_machine_) {
    // BBR, where it is the default, paces here too: half the rate of plain sockets, for twice the CPU.
    constexpr std::string_view kUnpaced = "cubic";
    (void)::setsockopt(descriptor_, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size());
  }
  if (round_trip_ < StreamCount::kNear) return;
  // Any limit makes the kernel pace: several streams that send their windows in bursts overflow the queues on
  // the way (15 of them over 300 ms and 1 Gbit/s: 0.6 instead of 0.96 Gbit/s).
  constexpr unsigned long kBytesPerS = 4'000'000'000;
  (void)::setsockopt(descriptor_, SOL_SOCKET, SO_MAX_PACING_RATE, &kBytesPerS, sizeof kBytesPerS);
}

// owner: the Stream, see channel.h
std::shared_ptr<Channel> plain_channel(asio::ip::tcp::socket socket) {
  return std::make_shared<PlainChannel>(std::move(socket));  // owner: as above
}

// owners: see channel.h
std::shared_ptr<Channel> channel_over(asio::ip::tcp::socket socket, Loop& loop, const Tls* tls, Side side) {
  return tls != nullptr ? tls_channel(loop, *tls, std::move(socket), side) : plain_channel(std::move(socket));
}

}  // namespace tw::host
