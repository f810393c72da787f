// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plan/model/model_profile.h"

namespace tw::plan {

/// The user's own model: model, params_m, tensors, microbatch, data_mb_per_sample, matchmaking_s. The maps
/// accumulating and alone lead from a GPU (or another machine name) to samples per second.
Result<ModelProfile> read_profile(const std::string& file, std::string_view text);
std::string write_profile(const ModelProfile& model);

}  // namespace tw::plan
