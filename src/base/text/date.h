// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Calendar time as seconds since 1970, UTC.
namespace tw {

/// "2023-04-25", or with a time of day "2026-05-20T10:00:00", then "Z", "+02:00" or nothing (UTC).
std::optional<std::int64_t> parse_date(std::string_view text);

/// "2026-05-20T10:00:00Z"; a midnight as "2023-04-25".
std::string date_text(std::int64_t unix_s);

}  // namespace tw
