// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "launch/engine.h"

namespace tw::launch {

std::unique_ptr<Engine> kubernetes_engine();
std::unique_ptr<Engine> local_engine();
std::unique_ptr<Engine> skypilot_engine();
std::unique_ptr<Engine> ssh_engine();
std::unique_ptr<Engine> slurm_engine();

}  // namespace tw::launch
