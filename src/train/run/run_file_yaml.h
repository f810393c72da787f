// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/run/program.h"
#include "train/run/run.h"

namespace tw::train {

/// Reads a run file (YAML; the keys are those of run_file_reference(), train/run/run_fields.h). `overrides`
/// are pairs such as
/// {"training.rounds", "100"} and win over the file. Paths in the file are relative to it, paths in overrides
/// to the current folder. An empty path: overrides alone. In the result all paths are absolute.
///
/// An error has one line for each fault, "run.yaml:12: trainning: unknown key; did you mean "training"?".
Result<RunOptions> read_run_file(const std::string& path,
                                 const std::vector<std::pair<std::string, std::string>>& overrides = {});

/// Refuses what is wrong by itself, a key or its value; a program may add what they go together with.
Status check_run_file(const std::string& path);

/// `program:` of a run file; without a command where there is none. Other keys are not checked.
Result<ProgramOptions> read_program(const std::string& path);

/// The run file without `program:`, which peers need not know: its environment may hold secrets.
Result<std::string> without_program(const std::string& path, const std::string& text);

/// The keys of a run file and of overrides that hold paths, with these paths made absolute: overrides with
/// which a copy of both means the same in another folder. The paths need not exist.
Result<std::vector<std::pair<std::string, std::string>>> absolute_paths(
    const std::string& path, const std::vector<std::pair<std::string, std::string>>& overrides = {});

}  // namespace tw::train
