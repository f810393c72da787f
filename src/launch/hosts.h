// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "market/site.h"

namespace tw::launch {

/// A machine that ssh reaches: a line of the file of `--hosts`,
/// "user@gpu1 site=onprem:eu gpu=T4 address=10.0.0.5 port=7000 peers=1 home=/data/tradewind".
struct Host {
  std::string ssh;                   ///< destination of ssh
  std::string address;               ///< where other peers reach it; by itself the host's name
  bool is_named = false;             ///< address= says it
  std::uint16_t port = 7000;         ///< of its first peer; others follow
  int peers = 1;                     ///< most peers on it
  std::optional<market::Site> site;  ///< nothing: any site of the plan
  std::string gpu;                   ///< empty: any
  std::string home;                  ///< empty: ~/.tradewind

  bool operator==(const Host&) const = default;
};

/// Errors name file and line. Empty lines and what follows # are skipped.
Result<std::vector<Host>> read_hosts(const std::string& file, std::string_view text);

}  // namespace tw::launch
