// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/round_trip.h"

#include <linux/tcp.h>  // has tcpi_min_rtt, and cannot be included beside netinet/tcp.h, which lacks it
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>

namespace tw::host {

std::optional<Duration> least_round_trip(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (info.tcpi_min_rtt == 0 || info.tcpi_min_rtt == UINT32_MAX) return std::nullopt;
  return std::chrono::microseconds(info.tcpi_min_rtt);
}

}  // namespace tw::host
