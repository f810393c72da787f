// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/testbed/testbed.h"

namespace tw::measure {

/// The collectives that tradewind is compared with: programs of bench/, beside this one where it was built.
inline constexpr std::array<const char*, 4> kBaselines = {"gloo", "gloo-ring", "openmpi", "butterfly"};

struct BaselineTask {
  std::vector<Host> hosts;  ///< a rank on each
  std::uint64_t bytes = 0;
  int warm_up = 0;
  int rounds = 0;
  std::string folder;  ///< empty; for what the ranks share and print
};

/// Times of each round, from the first rank that begins to the last that has the sum, and CPU of all ranks.
struct BaselineTimes {
  std::vector<double> seconds;
  std::vector<double> cpu_s;
};

/// An error when a program is not there, with how to build it.
Result<std::string> baseline_program(const std::string& baseline);

/// Errors: what a rank printed last, or a sum that is wrong.
Result<BaselineTimes> run_baseline(const std::string& baseline, const BaselineTask& task);

}  // namespace tw::measure
