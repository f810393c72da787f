// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plan/model/model_profile.h"

namespace tw::plan {

/// The user's own model, by the names of ModelProfile. The maps accumulating and alone lead from a GPU (or
/// another machine name) to samples per second, spread to the factor of their 80 % range, hardware to words.
Result<ModelProfile> read_profile(const std::string& file, std::string_view text);
std::string write_profile(const ModelProfile& model);

}  // namespace tw::plan
