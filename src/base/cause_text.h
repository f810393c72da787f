// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

namespace tw {

/// What the system says of a failed call; with the remedy where a limit of the user is too low: "Too many
/// open files (raise the limit of this process, for example: ulimit -n 65536)".
std::string cause_text(const std::error_code& cause);

/// cause: as errno has it.
std::string cause_text(int cause);

}  // namespace tw
