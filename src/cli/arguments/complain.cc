// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/terminal/terminal.h"

namespace tw::cli {

int complain(const std::string& message, int code) {
  show_aside("tw: " + message);
  return code;
}

void warn(const std::string& message) { complain(message, kDone); }

}  // namespace tw::cli
