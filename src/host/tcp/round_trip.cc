// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/round_trip.h"

#include <linux/tcp.h>  // has tcpi_min_rtt, and cannot be included beside netinet/tcp.h, which lacks it
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>

namespace tw::host {
namespace {

/// All zero where the kernel does not tell.
tcp_info info_of(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  (void)::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

}  // namespace

std::optional<Duration> least_round_trip(int socket) {
  const auto least_us = info_of(socket).tcpi_min_rtt;
  if (least_us == 0 || least_us == UINT32_MAX) return std::nullopt;
  return std::chrono::microseconds(least_us);
}

std::uint64_t acknowledged_bytes(int socket) { return info_of(socket).tcpi_bytes_acked; }

}  // namespace tw::host
