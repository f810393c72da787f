// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace tw::host {

/// Makes this folder, or takes it if it is there and only this user can enter it: no link, of this user, mode
/// 0700. For folders with known names where anybody may have been first, as in /tmp. The error names the
/// folder, what it is, and the remedy.
Status take_own_folder(const std::string& path);

}  // namespace tw::host
