// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/arguments/launch_arguments.h"

namespace tw::cli {

/// `tw up --keep`: checks the run at intervals until it is complete or a signal arrives; the peers go on
/// after a signal. Returns the exit code.
int keep_run(const UpArguments& arguments, const std::string& run, Duration every);

/// The time between two looks (--every), from 1 s.
Result<Duration> interval_of(const UpArguments& arguments);

}  // namespace tw::cli
