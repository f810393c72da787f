// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/watch/report_exports.h"

namespace CLI {
class App;
}

/// The commands that look at a run or at a machine.
namespace tw::cli {

struct ReportArguments {
  std::string folder;
  std::string plan;
  Exports exports;
  bool json = false;
};

void describe_report(CLI::App& app, ReportArguments& arguments);
int report(const ReportArguments& arguments);

struct TopArguments {
  std::string where;  ///< logs or an address
  std::string plan, token, pin;
  bool once = false;
};

void describe_top(CLI::App& app, TopArguments& arguments);
int top(const TopArguments& arguments);

struct DoctorArguments {
  std::vector<std::string> words;  ///< a token or @FILE, a profile
  std::string plan;
  std::string site;
  std::string probe;
  std::string listen;
  std::string folder = ".";
  std::string rendezvous;  ///< as in a run file
  bool insecure = false;
  bool json = false;
};

void describe_doctor(CLI::App& app, DoctorArguments& arguments);
int doctor(const DoctorArguments& arguments);

}  // namespace tw::cli
