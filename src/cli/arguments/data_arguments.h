// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tw::cli {

struct DataArguments {
  std::vector<std::string> shards;  ///< index
  std::string index;                ///< ls, verify: a .twi file
  std::string out;
  bool contents = false;
  std::string limit = "20";
  std::string source;  ///< pack
  std::string shard_size = "256MiB";
  std::string seed = "1";
  bool classes = false, force = false;
};

void describe_data(CLI::App& app, DataArguments& arguments);
/// command: "index", "ls", "verify" or "pack".
int run_data(const DataArguments& arguments, const std::string& command);

/// Why -o is no path and no object of a store that is written; empty: it is one.
std::string fault_in_out(const std::string& out);

/// tw data pack
int pack_data(const DataArguments& arguments);

}  // namespace tw::cli
