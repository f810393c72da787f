// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tw {

/// "64MiB", "256MB", "100": bytes, above 0 and at most 1 TiB; nothing for other texts.
std::optional<std::uint64_t> parse_size(const std::string& text);

/// "64 MiB", in the largest unit that gives a whole number.
std::string size_text(std::uint64_t bytes);

/// "1,510,400"
std::string grouped(std::uint64_t number);

/// Rounded to so many significant digits, without an exponent: "0.144", "22.9", "104,500". For infinities and
/// NaN "inf", "-inf" and "nan".
std::string significant(double number, int digits);

}  // namespace tw
