// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/engine.h"

namespace tw::launch {

/// Runs a program until it ends. Its stdin and both outputs are files in memory: a secret reaches no disk,
/// and a background process with open outputs (the master of ssh) does not block. Error: the program could
/// not be started, its input_file could not be read, or its own_folder is open to others. Blocks; any thread.
Result<Output> run_command(const Command& command);

/// Runs all commands: those about the run one after the other, those about peers in parallel, in order for
/// each peer. After a failure for a peer, its later commands are skipped; after one for the run, all. Output
/// is in the order of the commands; skipped ones have none. An error names the first command that failed, and
/// its message.
struct Batch {
  struct Failure {
    std::uint32_t peer = 0;  ///< 0: the run
    std::string message;
  };

  std::vector<Output> outputs;
  std::vector<Failure> failures;  ///< at most one for each peer, and the run
};

Batch run_all(const std::vector<Command>& commands);

/// As a shell line, for --dry-run and messages.
std::string to_line(const Command& command);

}  // namespace tw::launch
