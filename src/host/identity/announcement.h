// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/identity/tls.h"
#include "wire/token.h"

namespace tw::host {

/// "A peer of this run can be reached at this address, until then", with the certificate of its token and a
/// signature: peers store it for each other in a directory that anybody can write to.
std::vector<std::byte> sign_announcement(const wire::Token& token, const std::string& address,
                                         std::int64_t until_unix_s);

/// The address; nothing if it is not of a peer of this run, or has expired.
std::optional<std::string> read_announcement(std::span<const std::byte> bytes, const Tls& tls,
                                             std::int64_t now_unix_s);

}  // namespace tw::host
