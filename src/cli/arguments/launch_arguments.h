// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/plan/price_sources.h"

namespace CLI {
class App;
}

namespace tw::cli {

struct UpArguments {
  std::string plan;
  std::vector<std::string> on;  ///< ENGINE or WHICH=ENGINE
  std::string run_file;         ///< empty: that of the plan
  std::string name;             ///< empty: that of the run file
  std::string hosts;
  std::string ssh_config;
  std::string run_folder;  ///< of `tw init`; empty: a key of its own
  std::string state;
  std::string image;
  std::string program;  ///< empty: this one
  std::string grace = "25s";
  std::vector<std::string> set;
  std::vector<std::string> with;  ///< KEY=VALUE for the engine
  std::string every = "10s";      ///< between looks of --keep
  bool dry_run = false;
  bool check = false;
  bool anew = false;  ///< of this start alone
  bool keep = false;
  bool ask = false;
  MarketArguments market;  ///< prices of --keep
};

void describe_up(CLI::App& app, UpArguments& arguments);
int up(const UpArguments& arguments);

struct DownArguments {
  std::string run;
  std::string state;
};

void describe_down(CLI::App& app, DownArguments& arguments);
int down(const DownArguments& arguments);

struct StatusArguments {
  std::string run;
  std::string state;
  bool json = false;
};

void describe_status(CLI::App& app, StatusArguments& arguments);
int status(const StatusArguments& arguments);

struct LogsArguments {
  std::string run;
  std::string peer;
  std::string state;
};

void describe_logs(CLI::App& app, LogsArguments& arguments);
int logs(const LogsArguments& arguments);

}  // namespace tw::cli
