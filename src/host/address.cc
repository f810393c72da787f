// SPDX-License-Identifier: Apache-2.0
#include "host/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <string_view>

#include "base/text/number.h"

namespace tw::host {

Result<Address> parse_address(const std::string& text) {
  const Error wrong{
      fmt::format("'{}' is no address; expected host:port or [v6]:port, port 0 to 65535", text)};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  const auto port = parse_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  std::string host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!port || host.empty() || (!bracketed && host.find_first_of(":[]") != std::string::npos)) return wrong;
  return Address{host, *port};
}

std::string to_string(const Address& address) {
  if (address.host.find(':') != std::string::npos) return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

bool is_number(const std::string& host) {
  in6_addr ignored{};
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_number(host));
}

}  // namespace tw::host
