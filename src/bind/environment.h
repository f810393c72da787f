// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "host/system/environment.h"

namespace tw::bind {

/// Keys and texts of settings (tw_setting), in order; "join" may be repeated.
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Settings of a program that `tw run` or a user starts with TRADEWIND_* variables: those given, then those
/// that only the environment has. A setting that both have, with other values, is an error that names both.
Result<Pairs> with_environment(Pairs given, const host::Environment& variable);

/// A line for each TRADEWIND_* variable that nothing reads and that is like one that is read, or like a key
/// of the run file. Others are the program's own, or of Kubernetes.
std::vector<std::string> misspelt_variables(const std::vector<std::string>& names,
                                            const host::Environment& variable);

/// A program that was started again (TRADEWIND_REJOIN) while its run goes on still has the words of its first
/// start, such as anew=True: removes them, and says so, a line each.
std::vector<std::string> let_rejoin_win(Pairs& all, const host::Environment& variable);

}  // namespace tw::bind
