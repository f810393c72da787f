// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tw::cli {

/// `tw plan --replay`: costs of policies along a trace.
struct ReplayArguments {
  std::string trace;
  std::string only;
  std::string work_h = "48";
  std::string deadline_h = "64";
  std::string change_over_s = "720";
  std::string machines;
  std::string spot_usd_h = "0.3";
  std::string on_demand_usd_h = "1";
  std::string every_h = "24";
};

void describe_replay(CLI::App& command, ReplayArguments& arguments);
int replay_traces(const ReplayArguments& arguments, bool json);

}  // namespace tw::cli
