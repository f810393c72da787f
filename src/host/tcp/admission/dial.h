// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace tw::host {

class Loop;
class Stream;
class Tls;

// owners of the stream: whoever takes it from the call, see stream.h
using Dialed = std::function<void(Result<std::shared_ptr<Stream>>)>;

/// Resolves and connects, trying all addresses of a name, for at most ten seconds. Calls once, on the loop
/// thread, never from inside dial; the error is the cause without the address. The TLS handshake begins when
/// the stream is used; with null there is no TLS.
void dial(Loop& loop, const Tls* tls, const std::string& address, Dialed done);

}  // namespace tw::host
