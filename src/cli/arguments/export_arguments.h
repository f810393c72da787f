// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tw::cli {

struct ExportArguments {
  std::string checkpoint;
  std::string out;
};

void describe_export(CLI::App& app, ExportArguments& arguments);
int export_model(const ExportArguments& arguments);

}  // namespace tw::cli
