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

/// Turns requests away before anybody looks at what they ask for. Pure; loop thread.
class WebGuard {
 public:
  struct Rules {
    Address address{};                 ///< where the server listens, as a number
    std::vector<std::string> names{};  ///< of this machine, besides: what a browser may call it
    std::optional<Viewers> viewers{};  ///< nothing: whoever reaches the server may see
  };

  explicit WebGuard(Rules rules);

  /// The answer, where the request is not let through: 400 a path with dots or strange signs, 401 no or a
  /// wrong token, 403 another host's name, 405 neither GET nor HEAD. A good token in the query is taken for a
  /// cookie by a redirect (303), so that it stays in no history. Nothing: it may be answered.
  std::optional<WebAnswer> stop(const WebRequest& request, std::int64_t now_unix_s) const;

 private:
  bool knows_host(const std::string& host) const;
  std::optional<WebAnswer> stop_stranger(const WebRequest& request, std::int64_t now_unix_s) const;

  Rules rules_;
  std::string cookie_;  ///< its name: cookies are common to all ports of a machine
};

}  // namespace tw::host
