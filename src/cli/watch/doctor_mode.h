// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "market/site.h"
#include "measure/doctor/findings.h"
#include "plan/model/model_profile.h"

namespace tw::cli {

/// A link of this machine, as a probe measured it.
struct MeasuredLink {
  market::Site to;
  double rtt_s = 0;
  double out_bytes_per_s = 0, in_bytes_per_s = 0;
};

/// Which training.mode the links want (plan/advise/mode_choice.h), for this machine and one like it at the
/// other end of each link. samples: of a round. Where links or the model's speed are missing, what to
/// give for them; nothing where both are.
std::optional<measure::Finding> judge_mode(const plan::ModelProfile& model, const market::Site& own,
                                           const std::vector<MeasuredLink>& links, double samples);

}  // namespace tw::cli
