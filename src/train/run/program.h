// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text/field_table.h"

namespace tw::train {

/// `program:` of a run file: what `tw up` starts on each machine as a peer. Peers do not read it.
struct ProgramOptions {
  std::vector<std::string> command;  ///< words; empty: none
  std::vector<std::string> files;    ///< files and folders beside the run file, relative to it
  std::vector<std::string> setup;    ///< lines of sh, once on each machine
  std::map<std::string, std::optional<std::string>> env;  ///< nothing: that of the environment of `tw up`
  std::string image;                                      ///< of engines that start containers
};

/// Stores the keys below `program:`; the complaints name them.
void read_program(const Tree& section, const std::string& where, Complaints& complaints,
                  ProgramOptions& program);

/// Its keys with their values and meaning, as rows of run_file_reference().
std::string program_reference();

}  // namespace tw::train
