// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "host/tcp/framing.h"
#include "host/tcp/party.h"
#include "host/tcp/socket_error.h"
#include "host/tcp/stream.h"

namespace tw::host {
namespace {

using asio::ip::tcp;
using testing::AllOf;
using testing::HasSubstr;

/// A connection on which nothing comes, until it ends as a test says.
class SilentChannel final : public Channel {
 public:
  explicit SilentChannel(tcp::socket socket) : Channel(socket), socket_(std::move(socket)) {}

  void read_some(std::span<const asio::mutable_buffer>, Done done) override { reading_ = std::move(done); }

  void write_some(std::span<const asio::const_buffer>, Done) override {}

  void end_sending() override {}

  void close() override {
    release_guard();
    reading_ = nullptr;  // it holds the stream
  }

  std::string in_words(const std::error_code& error) const override { return host::in_words(error); }

  tcp::socket& socket() { return socket_; }

  void end(const std::error_code& error) { std::exchange(reading_, nullptr)(error, 0); }

 private:
  tcp::socket socket_;
  Done reading_;
};

struct Connection {
  explicit Connection(Loop& loop) : here(loop.context()), there(loop.context()) {
    tcp::acceptor acceptor(loop.context(), {asio::ip::address_v4::loopback(), 0});
    here.connect(acceptor.local_endpoint());
    acceptor.accept(there);
  }

  tcp::socket here, there;
};

/// What a link says when one of its two connections ends so, after this much data has arrived.
std::string said_at_the_end(const std::error_code& error, bool of_data, std::size_t arrived = 0) {
  Loop loop;
  Party party(loop, 1);
  Connection control(loop), data(loop);
  // owners: the streams and this
  const auto control_channel = std::make_shared<SilentChannel>(std::move(control.here));
  const auto data_channel = std::make_shared<SilentChannel>(std::move(data.here));  // owners: as above
  std::string said;
  Link link(loop, {PeerId{2}, 7, true},
            {std::make_shared<Stream>(loop, control_channel), {std::make_shared<Stream>(loop, data_channel)}},
            party, {[&](const std::string& why) { said = why; }, [](int) {}});
  link.start();
  const std::vector<char> sent(arrived, 'd');
  std::vector<char> received(arrived);
  asio::write(data_channel->socket(), asio::buffer(sent));
  asio::read(data.there, asio::buffer(received));
  soon(loop, [&] { return data_channel->acknowledged() >= arrived; });
  settle(loop);
  (of_data ? data_channel : control_channel)->end(error);
  soon(loop, [&] { return !said.empty(); });
  link.release().close();
  return said;
}

TEST(Link, names_the_mtu_where_only_its_data_gets_no_receipt) {
  const std::error_code timed_out = asio::error::timed_out;
  EXPECT_THAT(said_at_the_end(timed_out, true),
              AllOf(HasSubstr("MTU of the path may be lost"), HasSubstr("ping -M do -s 1400 127.0.0.1,")));
  EXPECT_EQ(said_at_the_end(timed_out, false), "connection timed out") << "all is silent";
  EXPECT_EQ(said_at_the_end(asio::error::connection_reset, true), "connection reset");
  EXPECT_EQ(said_at_the_end(timed_out, true, 64 << 10), "connection timed out") << "data did get through";
}

}  // namespace
}  // namespace tw::host
