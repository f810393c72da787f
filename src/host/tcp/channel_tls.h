// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/tcp/channel.h"

namespace tw::host {

/// TLS 1.3 over the socket. Shakes hands by itself with the first read or write; then each side sends its
/// verdict over the other's certificate, 0 or the length of the objection (u16, little-endian) and the
/// objection, before anything else. Bytes of the user come through when both verdicts are 0, else reads fail
/// and it lacks_credential(). Times out nothing but its own farewell.
// owners: the Stream and the operations under way
std::shared_ptr<Channel> tls_channel(Loop& loop, const Tls& tls, asio::ip::tcp::socket socket, Side side);

}  // namespace tw::host
