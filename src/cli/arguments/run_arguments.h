// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "peer/link_options.h"

namespace tw::cli {

/// Arguments of `tw run`.
struct RunArguments {
  std::string run_file;
  peer::LinkOptions links;  ///< empty texts were not given
  std::string threads;
  std::string peers = "1";
  std::string restarts = "0";
  std::vector<std::string> kill, stop;  ///< PEER@ROUND ...; rounds of new processes are in links.join
  std::vector<std::string> set;
  std::vector<std::string> words;  ///< the command, after --
};

}  // namespace tw::cli
