// SPDX-License-Identifier: Apache-2.0
#include "host/system/free_port.h"

#include <asio/ip/tcp.hpp>

namespace tw::host {

Result<std::uint16_t> free_port() {
  asio::io_context context;
  std::error_code error;
  asio::ip::tcp::acceptor acceptor(context);
  acceptor.open(asio::ip::tcp::v4(), error);
  if (!error) acceptor.bind({asio::ip::address_v4::loopback(), 0}, error);
  const auto here = error ? asio::ip::tcp::endpoint() : acceptor.local_endpoint(error);
  if (error) return Error{"no TCP port is free: " + error.message()};
  return here.port();
}

}  // namespace tw::host
