// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

/// Quantities as people write them. A rate and a time need their unit: a bare number is refused.
namespace tw::wan {

std::optional<double> parse_bit_s(std::string_view text);       ///< "500mbit", "6.2gbit"
std::optional<Duration> parse_duration(std::string_view text);  ///< "51.5ms", "150us", "1s"
std::optional<double> parse_bytes(std::string_view text);       ///< "6291456", "4MiB"
std::optional<double> parse_share(std::string_view text);       ///< "0.1%", "0.001"

std::string format_bit_s(double bit_s);  ///< "500 Mbit/s"; "-" for no limit
std::string format_ms(Duration duration);
std::string format_bytes(double bytes);

}  // namespace tw::wan
