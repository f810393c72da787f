// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/advise/mode_choice.h"

/// A prediction for each mode and for two numbers of samples a round: `tw predict --modes`.
namespace tw::plan {

/// Each mode at the batch of the work, then each at the least one, not below it, that a leader would choose;
/// in the codec of the work. An error: a pattern that has no modes, or an unknown GPU.
Result<std::vector<ModePoint>> predict_modes(const NamedWork& work, const Workload& workload,
                                             const std::vector<PeerGroup>& peers,
                                             const Knowledge& knowledge = {});

/// Which of them to take, and why, in a sentence (cheapest_of).
std::string mode_answer(const std::vector<ModePoint>& points);

/// The table and the answer.
std::string to_text(const std::vector<ModePoint>& points);
std::string to_json(const std::vector<ModePoint>& points);

}  // namespace tw::plan
