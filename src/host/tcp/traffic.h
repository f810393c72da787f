// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::host {

/// Bytes that crossed sockets, framing included.
struct LinkBytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  LinkBytes& operator+=(const LinkBytes& other) {
    sent += other.sent;
    received += other.received;
    return *this;
  }

  bool operator==(const LinkBytes&) const = default;
};

}  // namespace tw::host
