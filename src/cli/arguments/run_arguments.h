// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tw::cli {

/// Arguments of `tw run`.
struct RunArguments {
  std::string run_file;
  std::string peers = "1";
  std::string join;
  std::string listen;
  std::string run_folder;
  std::string token;
  std::string site;
  std::string notices;
  std::string grace;
  std::string usd_per_h;
  std::string out;
  std::string restarts = "0";
  std::vector<std::string> words;  ///< the command, after --
  bool insecure = false;
};

}  // namespace tw::cli
