// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/engine.h"

namespace tw::launch {

/// Runs a program until it ends. Its stdin and both outputs are files in memory: a secret reaches no disk,
/// and a background process with open outputs (the master of ssh) does not block. At its limit, and when a
/// signal ends this program (HeldEndSignals), its process group gets SIGTERM, and SIGKILL 5 s later. Error:
/// the program could not be started or was interrupted, its input_file could not be read, or its own_folder
/// is open to others. Blocks; any thread.
Result<Output> run_command(const Command& command);

/// Runs all commands: those about the run one after the other, those about peers in parallel, in order for
/// each peer. After a failure for a peer, its later commands are skipped; after one for the run, all
/// (but Command::others_go_on). Output
/// is in the order of the commands; skipped ones have none. An error names the first command that failed, its
/// peer and its message. SIGINT, SIGTERM and SIGHUP come into effect when no command is under way any more.
/// Main thread.
struct Batch {
  enum class Why { failed, late, interrupted };

  struct Failure {
    std::uint32_t peer = 0;  ///< 0: the run
    std::string message;
    Why why = Why::failed;  ///< late: it did not answer within its limit
  };

  std::vector<Output> outputs;
  std::vector<Failure> failures;  ///< at most one for each peer and the run, apart from others_go_on
};

Batch run_all(const std::vector<Command>& commands);

/// Why the first of these commands whose program is not on this machine cannot run; empty: all are there.
std::string missing_program(const std::vector<Command>& commands);

/// As a shell line, for --dry-run and messages.
std::string to_line(const Command& command);

}  // namespace tw::launch
