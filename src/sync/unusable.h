// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"

namespace tw::sync {

struct RunWords;

/// A checkpoint in a folder that does not serve a run.
struct UnusableCheckpoint {
  std::string name;  ///< of its file
  Round round = 0;   ///< in its name
  std::string why;
  bool damaged = false;  ///< no program can use it: CheckpointStore::save() removes it
};

/// A line for each reason, with the names of all files that it holds for: "NAME, NAME: it is cut off".
std::vector<std::string> lines_by_reason(const std::vector<UnusableCheckpoint>& files);

/// The same of those from this round on, for a run that goes on without them; of damaged files, also that
/// they are removed.
std::vector<std::string> passed_over(const std::vector<UnusableCheckpoint>& files, Round from);

/// The first fact of one run that the other one lacks, as others may follow from it, and what stands there in
/// its place: `there "batch=512", here "batch=64"`, or nothing.
std::string difference(const RunWords& there, const RunWords& here);

}  // namespace tw::sync
