// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace tw {

/// The input of parse_duration, for messages.
inline constexpr std::string_view kDurationWords = "a duration such as 20s (ms, s, m or h), at most a year";

/// "250ms", "20s", "1.5h"; nothing for other texts.
std::optional<Duration> parse_duration(std::string_view text);

/// "8 s", "12 min 3 s", "1 h 23 min", "12 d 4 h": rounded, for people; below zero "0 s", and beyond ten years
/// "more than 10 years".
std::string duration_text(double seconds);

}  // namespace tw
