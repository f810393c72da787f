// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/address.h"
#include "host/identity/viewers.h"
#include "host/web/message.h"

namespace tw::host {

/// Refuses requests before their content is handled. Pure; loop thread.
class WebGuard {
 public:
  struct Rules {
    Address address{};                 ///< where the server listens, as a number
    std::vector<std::string> names{};  ///< further names of this machine in a browser
    std::optional<Viewers> viewers{};  ///< nothing: all who reach the server may watch
  };

  explicit WebGuard(Rules rules);

  /// The answer to a refused request: 400 a path with dots or unusual characters, 401 no or a wrong token,
  /// 403 another host's name, 405 neither GET nor HEAD. A valid token in the query is exchanged for a cookie
  /// by a redirect (303), so that no history keeps it. Nothing: the request may be answered.
  std::optional<WebAnswer> stop(const WebRequest& request, std::int64_t now_unix_s) const;

 private:
  bool knows_host(const std::string& host) const;
  std::optional<WebAnswer> stop_stranger(const WebRequest& request, std::int64_t now_unix_s) const;

  Rules rules_;
  std::string cookie_;  ///< its name: cookies are common to all ports of a machine
};

}  // namespace tw::host
