// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

/// Where the processes of `tw bench reduce` run.
namespace tw::bench {

/// One machine, real or emulated.
struct Host {
  std::vector<std::string> enter;  ///< words in front of a command that is to run there
  std::string address = "127.0.0.1";
  double bytes_per_s = 0;  ///< that it can send, and receive; 0: not known
};

}  // namespace tw::bench
