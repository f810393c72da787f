// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/input/named_work.h"
#include "plan/model/throughput.h"

/// Which mode, codec and samples a round to take: `tw plan`, `tw predict --modes` and `tw doctor`.
namespace tw::plan {

/// A round in one mode, as it is predicted.
struct ModePoint {
  std::string mode;   ///< training.mode
  std::string codec;  ///< training.codec
  double round_samples = 0;
  bool is_enlarged = false;  ///< round_samples are those that a leader would choose (work_for_averaging)
  Prediction prediction;

  /// Share of the time in which peers do not compute.
  double waits() const;
};

/// A cluster, and how it is to average.
struct ModeQuestion {
  const NamedWork& work;
  const Workload& workload;  ///< of `work`
  const std::vector<PeerGroup>& peers;
  const Knowledge& knowledge;
  std::set<std::string> open{};  ///< of mode, codec and tbs: what may be chosen
};

/// False: the pattern has none.
bool has_modes(Pattern pattern);

/// What may be chosen, not predicted yet, in the order of what it costs in convergence: sync, delayed,
/// streaming; in each fp16, int8, int4 (an open sync: fp16 alone); the last one again with more samples a
/// round. What is not open stays. local is never chosen: streaming is as fast with fewer steps between
/// averagings.
std::vector<ModePoint> choices_of(const NamedWork& work, const std::set<std::string>& open);

/// In this mode, in the codec and batch of the work. enlarged: with the fewest samples, not below that batch,
/// that a leader would choose.
Result<ModePoint> predict_mode(const ModeQuestion& question, const std::string& mode, bool enlarged);

struct ModeChoice {
  std::vector<ModePoint> points;
  std::size_t chosen = 0;

  const ModePoint& best() const { return points.at(chosen); }
};

/// Goes from the point `from` to later ones where they gain more than kAcceptedWait in samples/s.
ModeChoice cheapest_of(std::vector<ModePoint> points, std::size_t from = 0);

/// Predicts choices_of, and takes one. Requires a pattern with modes. An error: an unknown GPU.
Result<ModeChoice> choose_mode(const ModeQuestion& question, std::size_t from = 0);

/// The work with what the point says.
template <class Work>
Work with_choice(Work work, const ModePoint& point) {
  take_setting("mode", point.mode, work);
  take_setting("codec", point.codec, work);
  work.target_batch_size = point.round_samples;
  return work;
}

/// "sync would wait 71 % of the time; streaming in int4 hides all of it: 3.4 times the samples/s."
std::string reason_of(const ModeChoice& choice);

/// How much faster the other one is: "streaming in int4 would hide ...". Empty where it gains no more than
/// kAcceptedWait.
std::string better_text(const ModePoint& taken, const ModePoint& other);

/// What a mode was measured to cost in loss (docs/modes.md).
struct ModeLoss {
  std::string outer;  ///< the better training.outer of a run of so many samples; empty: the mode has none
  std::string text;   ///< empty: nothing
};

/// run_samples: of the whole run.
ModeLoss loss_of(const ModePoint& point, const NamedWork& work, const ModelProfile& model, int peers,
                 double run_samples);

}  // namespace tw::plan
