// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace tw::world {

/// In the order of the message.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;  ///< http, https; GET file:///PATH reads a file of this machine: 200, or 404 where none is
  HttpHeaders headers{};
  std::string body{};
  Duration patience = std::chrono::seconds(5);     ///< for the whole exchange
  Duration silence{};                              ///< without a byte, connecting included; 0: no limit
  std::size_t most_bytes = std::size_t{64} << 10;  ///< of the answer; a longer one is an error
  /// "sha256//BASE64" of the server's public key, which then identifies it without an authority. Empty: an
  /// authority that this machine trusts identifies it.
  std::string pin{};
  std::string authorities{};  ///< a file of those that may identify the server; empty: this machine's

  bool operator==(const HttpRequest&) const = default;
};

struct HttpAnswer {
  int status = 0;  ///< 200: the body is what was asked for
  std::string body{};
  HttpHeaders headers{};

  /// Ignores the case of header names.
  std::optional<std::string> header(std::string_view name) const;
};

/// Door to servers that speak HTTP. Several requests may be under way at a time; each may take as long as its
/// patience. Redirects are not followed. Loop thread only.
class Http {
 public:
  using Done = std::function<void(Result<HttpAnswer>)>;

  /// Ends the requests under way, without calling back.
  virtual ~Http() = default;

  /// Calls once with the answer, or with the failure on the way; never from inside this call. A status other
  /// than 200 is no error.
  virtual void request(HttpRequest request, Done done) = 0;
};

}  // namespace tw::world
