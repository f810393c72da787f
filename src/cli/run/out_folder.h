// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace tw::cli {

/// Makes the folder of --out, or removes the event logs and checkpoints of an earlier run from it. Other
/// content is an error, and nothing is removed.
Status empty_out_folder(const std::string& folder);

}  // namespace tw::cli
