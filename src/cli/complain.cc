// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/commands.h"

namespace tw {

int complain(const std::string& message, int code) {
  fmt::print(stderr, "tw: {}\n", message);
  return code;
}

}  // namespace tw
