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

/// In the order in which they stand in the message.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;  ///< http, https; GET file:///PATH reads a file of this machine: 200, or 404 where none is
  HttpHeaders headers{};
  std::string body{};
  Duration patience = std::chrono::seconds(5);     ///< for the whole exchange
  Duration silence{};                              ///< without a byte, from the connection on; 0: no limit
  std::size_t most_bytes = std::size_t{64} << 10;  ///< of the answer; a longer one is an error
  /// "sha256//BASE64" of the server's public key: it is known by that, and needs no authority. Empty: by an
  /// authority that this machine trusts.
  std::string pin{};

  bool operator==(const HttpRequest&) const = default;
};

struct HttpAnswer {
  int status = 0;  ///< 200: the body is what was asked for
  std::string body{};
  HttpHeaders headers{};

  /// Names of headers are the same in capitals and small letters.
  std::optional<std::string> header(std::string_view name) const;
};

/// Door to servers that speak HTTP. Requests may be under way at the same time, and hang as long as their
/// patience lasts. Redirects are not followed. Loop thread only.
class Http {
 public:
  using Done = std::function<void(Result<HttpAnswer>)>;

  /// Ends the requests under way; none of them is heard of any more.
  virtual ~Http() = default;

  /// Calls once with the answer, or with what went wrong on the way; never from inside this call. An answer
  /// of the server other than 200 is no error.
  virtual void request(HttpRequest request, Done done) = 0;
};

}  // namespace tw::world
