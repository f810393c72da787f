// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "monitor/report/report.h"

namespace tw::monitor {

/// The report for people: some 10 lines, plain text.
std::string render(const Summary& summary);

}  // namespace tw::monitor
