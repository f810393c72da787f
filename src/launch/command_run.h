// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/engine.h"

namespace tw::launch {

/// Runs a program until it ends. Its stdin and both outputs are files in memory: a secret reaches no disk,
/// and what a program leaves behind with its outputs open (the master of ssh) keeps nobody waiting. An error:
/// it could not be started, or its input_file not be read. Blocks; any thread.
Result<Output> run_command(const Command& command);

/// All of them: those about the run in order and alone, those about peers at once, in order for each peer.
/// After the first that fails for a peer, its later ones are left out; after one about the run, all. Output
/// is in the order of the commands; those left out have none. An error names the first command that failed,
/// and what it said.
struct Batch {
  std::vector<Output> outputs;
  std::vector<Error> failures;  ///< one for each peer, or the run
};

Batch run_all(const std::vector<Command>& commands);

/// As a person would write it, for --dry-run and messages.
std::string to_line(const Command& command);

}  // namespace tw::launch
