// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plan/model/model_profile.h"

namespace tw::plan {

/// A model of one's own: model, params_m, tensors, microbatch, data_mb_per_sample, matchmaking_s, and the
/// maps accumulating and alone from a GPU (or another name for a machine) to samples per second.
Result<ModelProfile> read_profile(const std::string& file, std::string_view text);
std::string write_profile(const ModelProfile& model);

}  // namespace tw::plan
