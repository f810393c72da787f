// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// Numbers as people write them.
namespace tw {

/// "1,510,400"
std::string grouped(std::uint64_t number);

/// Rounded to so many significant digits, without an exponent: "0.144", "22.9", "104,500". For "inf" and
/// "nan" these words.
std::string significant(double number, int digits);

}  // namespace tw
