// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/deployment.h"

/// From `program:` of a run file to what engines copy and start.
namespace tw::launch {

/// What the user wrote, and where.
struct ProgramWish {
  std::string folder;  ///< of the run file
  std::vector<std::string> command, files, setup;
  std::map<std::string, std::string> env;
  std::function<void(const std::string&)> warn = [](const std::string&) {};  ///< of what is left out
};

/// Looks at the files. Below its folders, links to folders, links to nothing and what is neither file nor
/// folder are left out with a warning. Errors: a file that is missing, or not below the folder; a script of
/// the command that is in no file, so that machines would lack it. in_image: what is missing may be in a
/// container image.
Result<UserProgram> user_program(const ProgramWish& wish, bool in_image);

/// Copies the files to `program/` below the run's folder, and removes those of before that are in it no more.
Status stage(const UserProgram& program, const std::string& from, const std::string& run_folder);

/// Folder of the Python package that belongs to this `tw`: it has `__init__.py` and libtradewind.so. Empty:
/// there is none.
std::string python_package_of(const std::string& tw);

/// All files of that folder by their paths in it, sorted, but for libtradewind.so, tw and compiled Python.
std::vector<std::string> files_of_package(const std::string& package);

}  // namespace tw::launch
