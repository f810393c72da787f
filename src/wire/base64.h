// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::wire {

/// base64url without padding (RFC 4648, section 5).
std::string to_base64(std::span<const std::byte> bytes);

/// Nothing when the text has another character.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace tw::wire
