// SPDX-License-Identifier: Apache-2.0
#include "host/system/free_port.h"

#include <fmt/format.h>

#include <asio/ip/tcp.hpp>
#include <cerrno>
#include <system_error>

#include "base/cause_text.h"

namespace tw::host {
namespace {

/// Without a loopback interface some kernels bind its address, and then reach nobody there.
std::error_code reach(const asio::ip::tcp::endpoint& here) {
  asio::io_context context;
  std::error_code error;
  asio::ip::tcp::socket socket(context);
  socket.connect(here, error);
  return error;
}

}  // namespace

Result<std::uint16_t> free_port() {
  asio::io_context context;
  std::error_code error;
  asio::ip::tcp::acceptor acceptor(context);
  acceptor.open(asio::ip::tcp::v4(), error);
  if (!error) acceptor.bind({asio::ip::address_v4::loopback(), 0}, error);
  if (!error) acceptor.listen(1, error);
  const auto here = error ? asio::ip::tcp::endpoint() : acceptor.local_endpoint(error);
  if (!error) error = reach(here);
  if (!error) return here.port();
  if (error != asio::error::network_unreachable && error.value() != EADDRNOTAVAIL)
    return Error{"no TCP port of 127.0.0.1 can be had: " + cause_text(error)};
  return Error{fmt::format(
      "peers of this machine meet at 127.0.0.1, and it has no such address ({}): bring the loopback "
      "interface up (ip link set lo up), or give another address with --listen HOST:PORT",
      cause_text(error))};
}

}  // namespace tw::host
