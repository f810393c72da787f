// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tw::host {

/// "host:port" or "[v6]:port"; the host is a name or a number, without brackets here.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const Address&) const = default;
};

/// The error names the text and what was expected.
Result<Address> parse_address(const std::string& text);

std::string to_string(const Address& address);

/// An address of IPv4 or IPv6, no name.
bool is_number(const std::string& host);

/// 127.0.0.0/8, ::1 or localhost.
bool is_this_machine(const std::string& host);

}  // namespace tw::host
