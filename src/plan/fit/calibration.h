// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "market/network.h"
#include "plan/fit/measured_run.h"
#include "plan/model/hivemind.h"
#include "plan/model/model_profile.h"

/// The constants of predictions, fitted to measured runs. Runs that are not clean are ignored.
namespace tw::plan {

/// The models with accumulation speeds from these runs: medians of runs with one kind of GPU. For a GPU that
/// ran only in mixed clusters, what the other GPUs leave of their speed.
Models models_from(const std::vector<MeasuredRun>& runs, const Models& models);

/// The law with the best fit to the times of averaging and of rounds: least soft-limited squares of log
/// errors, by Levenberg-Marquardt from `start`. Runs with on-premise machines scatter more and weigh less.
HivemindLaw law_from(const std::vector<MeasuredRun>& runs, const Models& models,
                     const market::NetworkProfile& network, const HivemindLaw& start);

}  // namespace tw::plan
