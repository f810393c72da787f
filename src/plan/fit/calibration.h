// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "market/network.h"
#include "plan/fit/measured_run.h"
#include "plan/model/hivemind.h"
#include "plan/model/model_profile.h"

/// The constants of predictions, from measured runs. Runs that are not clean count for nothing.
namespace tw::plan {

/// The models with the accumulation speeds of these runs in place of their own: medians of the runs with one
/// kind of GPU, and for a GPU that ran in mixed company alone of what the others leave of it.
Models models_from(const std::vector<MeasuredRun>& runs, const Models& models);

/// The law that fits the times of averaging and of rounds best: least soft-limited squares of log errors, by
/// Levenberg-Marquardt from `start`. Runs with on-premise machines scatter more and count less.
HivemindLaw law_from(const std::vector<MeasuredRun>& runs, const Models& models,
                     const market::NetworkProfile& network, const HivemindLaw& start);

}  // namespace tw::plan
