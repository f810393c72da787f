// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "launch/engine.h"

namespace tw::launch {

std::unique_ptr<Engine> kubernetes_engine();
std::unique_ptr<Engine> local_engine();
std::unique_ptr<Engine> skypilot_engine();
std::unique_ptr<Engine> ssh_engine();
std::unique_ptr<Engine> slurm_engine();

/// The error lists all names.
Result<std::unique_ptr<Engine>> one_engine(const std::string& name);

}  // namespace tw::launch
