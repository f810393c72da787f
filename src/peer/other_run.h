// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/run/run_facts.h"

namespace tw::peer {

struct Options;

/// Where this run has no checkpoint yet: what is left there of another run that has not ended, which may be
/// this one with another setting; a line for the user that names the first fact that differs. Empty: nothing
/// is left. parent: where runs have their folders of checkpoints, that of this run among them.
std::string other_run_in(const std::string& parent, const Options& options, const train::RunFacts& facts);

}  // namespace tw::peer
