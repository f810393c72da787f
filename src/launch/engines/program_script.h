// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launch/deployment.h"

/// Lines of sh about the user's program, for all engines. Each begins in the folder `program/` of the run,
/// beside which the peers have theirs.
namespace tw::launch {

/// A file to be read with `.`; a secret.
std::string variables_file(const UserProgram& program);

/// Makes the empty folders: not every way of copying has them. Runs the lines of setup, once on a machine for
/// each content of them. Their output goes to stdout and stderr. A failure ends the script with 1, after a
/// message on descriptor 3 that names machine, line and exit code. where: name of the machine, a word of sh.
std::string setup_lines(const UserProgram& program, const std::string& where);

/// Ends the script with 1, after a message on descriptor 3, if the machine has no such program, or its Python
/// no such package. tw: path of `tw`, a word of sh.
std::string probe_lines(const UserProgram& program, const std::string& where, const std::string& tw);

/// "-- python3 train.py", quoted, after a blank.
std::string command_line(const Deployment& deployment);

}  // namespace tw::launch
