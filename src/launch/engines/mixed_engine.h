// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "launch/engine.h"
#include "launch/engine_choice.h"

namespace tw::launch {

/// Gives each peer to its engine of a choice. Each sees a deployment of its own peers and settings, with the
/// others in `elsewhere`. An engine that cannot be asked makes its own peers unknown, and no others.
std::unique_ptr<Engine> mixed_engine(EngineChoice choice);

/// Peers and settings of one engine, as it is to see them.
Deployment part_of(const Deployment& whole, const EngineChoice& choice, const std::string& engine);

}  // namespace tw::launch
