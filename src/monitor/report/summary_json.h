// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "monitor/report/report.h"

namespace tw::monitor {

/// The content of summary.json, indented, with a line end. A value that is not known is null.
std::string to_json(const Summary& summary);

/// Writes DIR/summary.json.
Status write_summary(const std::string& folder, const Summary& summary);

}  // namespace tw::monitor
