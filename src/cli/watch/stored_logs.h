// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "world/files.h"

namespace tw::cli {

/// Copies the event logs of a folder of the store, or of its subfolder "logs" if only that one has logs, into
/// a folder of this machine. Several at a time: the store is asked from several threads. The error names the
/// object, or what was expected in the folder.
Status fetch_logs(world::Files& store, const std::string& folder, const std::string& to);

}  // namespace tw::cli
