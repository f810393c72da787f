// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/text/quantity.h"

/// Quantities in the words of a terminal's view.
namespace tw::monitor {

/// Four digits at most before the unit: "812 kB", "1.2 GB".
std::string bytes_text(double bytes);

/// "4.21", "103.2", "12,412": fewer digits behind the point where there are more before it.
std::string rate_text(double rate);

/// "$1.84"; "$0.0042" below ten cents.
std::string usd_text(double usd);

/// "1.84", "0.0163", "1250": no digit that counts is lost in small amounts; below a dollar three of them.
std::string usd_number(double usd);

/// "14:31:05", UTC.
std::string time_of_day(double unix_s);

/// "2026-11-29 14:31:05", UTC.
std::string date_and_time(double unix_s);

/// "-" where nothing is known.
template <class Text>
std::string known(const std::optional<double>& value, Text text_of_value) {
  return value ? text_of_value(*value) : "-";
}

}  // namespace tw::monitor
