// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/model/throughput.h"

/// A prediction for each mode and for two numbers of samples a round: `tw predict --modes`.
namespace tw::plan {

struct ModePoint {
  std::string mode;  ///< training.mode
  double round_samples = 0;
  Prediction prediction;

  /// Share of the time in which peers do not compute.
  double waits() const { return 1 - prediction.throughput_sps.value / prediction.local_sps.value; }
};

/// workload: of a mode that averages all parameters in each round. Each mode at the target batch, then each
/// at the least one, not below it, with which it hides averaging or, without overlap, waits 5 % of the time.
/// An error: a pattern that has no modes, or an unknown GPU.
Result<std::vector<ModePoint>> predict_modes(const Workload& workload, const std::vector<PeerGroup>& peers);

/// Which of them to take, and why, in a sentence.
std::string mode_answer(const std::vector<ModePoint>& points);

/// The table and the answer.
std::string to_text(const std::vector<ModePoint>& points);
std::string to_json(const std::vector<ModePoint>& points);

}  // namespace tw::plan
