// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace tw::host {

/// The shortest round trip that the kernel saw on a TCP connection in the last minutes: without queues on the
/// path. Nothing if the kernel does not tell, or the socket is closed.
std::optional<Duration> least_round_trip(int socket);

/// Bytes sent on a TCP connection whose receipt the other side's kernel told; 0 where this one does not say.
std::uint64_t acknowledged_bytes(int socket);

}  // namespace tw::host
