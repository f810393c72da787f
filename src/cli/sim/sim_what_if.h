// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "plan/advise/spot_policy.h"
#include "sim/scenarios/what_if.h"

namespace CLI {
class App;
}

/// `tw sim --trace-spot FILE` and `tw sim --lifetimes NAME`: what happens to a run on such machines.
namespace tw::cli {

struct WhatIfArguments {
  std::string trace_file, trace_id;
  std::string lifetimes;
  std::string policy;  ///< empty: the machines are those of the trace
  std::string codec = "fp16";
  int peers = 16;
  int zones = 1;
  double hours = 0;  ///< 0: not said
  double work_h = 0, deadline_h = 0, on_demand_usd_per_h = 0;
  double from_h = 0;
  double speed = 1;
  double shocks_per_day = 0, shock_share = 0.5;
  double notice_s = 0;
  double start_s = 85;
  double model_mb = 0;  ///< 0: not said
  sim::WhatIf what;     ///< the rest

  /// Whether the user asks for a what-if.
  bool given() const { return !trace_file.empty() || !lifetimes.empty(); }
};

void describe_what_if(CLI::App& command, WhatIfArguments& arguments);

/// Reads the trace or draws the lifetimes. policy: that of --policy; nullptr: none is given. An error names
/// the option, the value and what was expected.
Result<sim::WhatIf> what_if_of(const WhatIfArguments& arguments, plan::SpotPolicy* policy);

/// Prints a table, or JSON, and writes a page where html names a file. Exit code: 1 when an invariant was
/// violated, a round was lost, or the user's policy program failed.
int run_what_if(const WhatIfArguments& arguments, bool json, const std::string& html);

}  // namespace tw::cli
