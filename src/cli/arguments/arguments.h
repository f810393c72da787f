// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

/// Values of the command line, from text. Every error names the option, the value, what was expected, and
/// where there is one the nearest right thing.
namespace tw::cli {

/// "1..100": both ends are included.
Result<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text);

/// "training.rounds=20" for read_run_file.
Result<std::pair<std::string, std::string>> parse_setting(const std::string& text);

}  // namespace tw::cli
