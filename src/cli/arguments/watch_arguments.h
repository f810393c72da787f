// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tw::cli {

struct WatchArguments {
  std::string what;
  std::string listen = "127.0.0.1:0";
  std::string token;
  std::string pin;
  std::vector<std::string> names;
  std::string plan;
  std::string tensorboard;
  bool open = false;
};

void describe_watch(CLI::App& app, WatchArguments& arguments);
int watch(const WatchArguments& arguments);

}  // namespace tw::cli
