// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

/// Values of the command line, from text. Every error names the option, the value, what was expected, and
/// where there is one the nearest right thing.
namespace tw::cli {

/// "1..100": both ends are included.
Result<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text);

/// The complaint about the first option or argument of the chosen commands that was given as an empty word,
/// as shells make it of a variable that is not set; empty: none was.
std::string empty_word_in(const CLI::App& app);

/// "training.rounds=20" for read_run_file.
Result<std::pair<std::string, std::string>> parse_setting(const std::string& text);

}  // namespace tw::cli
