// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/mode_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/averaging_wait.h"
#include "base/check.h"

namespace tw::plan {
namespace {

/// By what they cost in convergence, the least first (docs/modes.md). In time local is as sync.
constexpr std::string_view kModeOrder[] = {"sync", "delayed", "streaming"};
/// Likewise, each with half the bytes of the one before, or less than that (bench/accuracy.py).
constexpr std::string_view kCodecOrder[] = {"fp16", "int8", "int4"};
/// What shows as 0 %.
constexpr double kNothing = 0.005;

/// No fewer than all peers compute at once.
double usual_samples(const ModeQuestion& question) {
  const double named = question.work.target_batch_size;
  if (!question.open.contains("tbs")) return named;
  return std::clamp(count_of(question.peers) * question.workload.model.microbatch, named,
                    std::max(named, kMostBatch));
}

/// Averaging takes as long for any number of samples.
double enlarged_samples(const ModeQuestion& question, const Prediction& prediction, bool overlaps) {
  const double calc_s = prediction.comm_s.value * work_for_averaging(overlaps);
  const double usual = usual_samples(question);
  const double least = std::max(usual, std::ceil(calc_s * prediction.local_sps.value));
  return question.open.contains("tbs") ? std::min(least, std::max(usual, kMostBatch)) : least;
}

Result<ModePoint> predicted(const ModeQuestion& question, ModePoint point) {
  const auto predict_it = [&] {
    return predict(in_mode_of(with_choice(question.work, point), question.workload), question.peers,
                   question.knowledge);
  };
  point.round_samples = usual_samples(question);
  TW_TRY(point.prediction, predict_it());
  if (!point.is_enlarged) return point;
  const bool overlaps = with_choice(question.work, point).delayed();
  point.round_samples = enlarged_samples(question, point.prediction, overlaps);
  TW_TRY(point.prediction, predict_it());
  return point;
}

double gain_of(const ModePoint& one, const ModePoint& before) {
  return one.prediction.throughput_sps.value / before.prediction.throughput_sps.value - 1;
}

/// What tells the point from another one.
std::string name_of(const ModePoint& point, const ModePoint& other) {
  std::string name = point.mode;
  if (point.codec != other.codec) name += " in " + point.codec;
  if (point.round_samples != other.round_samples)
    name += fmt::format(" with {:.0f} samples a round", point.round_samples);
  return name;
}

/// "waits 3 %", "hides all of it". form: "", or "s" after a name without would.
std::string wait_text(const ModePoint& point, std::string_view form) {
  if (point.waits() < kNothing) return fmt::format("hide{} all of it", form);
  return fmt::format("wait{} {:.0f} %", form, 100 * point.waits());
}

/// The median loss over that of sync, less 1 (bench/loss.py).
struct MeasuredLoss {
  std::string_view mode;
  double steps = 0;  ///< of a peer between two averagings of a parameter
  double nesterov = 0, mean = 0;
};

constexpr MeasuredLoss kLosses[] = {
    {"local", 8, -0.09, 0.41},     {"local", 32, 0.01, 0.37},     {"local", 128, 0.34, 0.37},
    {"streaming", 8, -0.04, 0.38}, {"streaming", 32, 0.14, 0.35}, {"streaming", 128, 0.52, 0.39},
};
constexpr double kDelayedLoss = -0.02;
/// Rounds of each fragment from which on momentum helps (docs/modes.md).
constexpr double kRoundsOfMomentum = 16;

}  // namespace

double ModePoint::waits() const {
  return std::max(0.0, 1 - prediction.throughput_sps.value / prediction.local_sps.value);
}

bool has_modes(Pattern pattern) {
  return pattern == Pattern::tradewind || pattern == Pattern::tradewind_sites;
}

Result<ModePoint> predict_mode(const ModeQuestion& question, const std::string& mode, bool enlarged) {
  return predicted(question, {.mode = mode, .codec = question.work.codec, .is_enlarged = enlarged});
}

std::vector<ModePoint> choices_of(const NamedWork& work, const std::set<std::string>& open) {
  const bool any_mode = open.contains("mode"), any_codec = open.contains("codec");
  std::vector<ModePoint> choices;
  for (const std::string_view mode : kModeOrder) {
    for (const std::string_view codec : kCodecOrder) {
      if (any_mode && mode == "sync" && !choices.empty()) break;
      choices.push_back({.mode = any_mode ? std::string(mode) : work.mode,
                         .codec = any_codec ? std::string(codec) : work.codec,
                         .round_samples = work.target_batch_size});
      if (!any_codec) break;
    }
    if (!any_mode) break;
  }
  if (!open.contains("tbs")) return choices;
  ModePoint larger = choices.back();
  larger.round_samples = std::max(larger.round_samples, kMostBatch);
  larger.is_enlarged = true;
  choices.push_back(std::move(larger));
  return choices;
}

ModeChoice cheapest_of(std::vector<ModePoint> points, std::size_t from) {
  TW_CHECK(from < points.size());
  ModeChoice choice{std::move(points), from};
  for (std::size_t at = from + 1; at < choice.points.size(); ++at)
    if (gain_of(choice.points[at], choice.best()) > kAcceptedWait) choice.chosen = at;
  return choice;
}

Result<ModeChoice> choose_mode(const ModeQuestion& question, std::size_t from) {
  TW_CHECK(has_modes(question.workload.pattern));
  std::vector<ModePoint> points;
  for (ModePoint& choice : choices_of(question.work, question.open)) {
    TW_TRY(auto point, predicted(question, std::move(choice)));
    points.push_back(std::move(point));
  }
  return cheapest_of(std::move(points), from);
}

std::string reason_of(const ModeChoice& choice) {
  const ModePoint& first = choice.points.front();
  const ModePoint& best = choice.best();
  if (choice.chosen == 0)
    return fmt::format("{} waits {:.0f} % of the time{}.", first.mode, 100 * first.waits(),
                       choice.points.size() > 1
                           ? fmt::format("; no other choice gains more than {:.0f} %", 100 * kAcceptedWait)
                           : "");
  std::string text = fmt::format("{} would wait {:.0f} % of the time", first.mode, 100 * first.waits());
  const auto delayed = std::ranges::find(choice.points, "delayed", &ModePoint::mode);
  if (first.mode != "delayed" && best.mode != "delayed" && delayed != choice.points.end())
    text += fmt::format(", delayed {:.0f} %", 100 * delayed->waits());
  return text + fmt::format("; {} {}: {:.1f} times the samples/s.", name_of(best, first),
                            wait_text(best, "s"), 1 + gain_of(best, first));
}

std::string better_text(const ModePoint& taken, const ModePoint& other) {
  const double gain = gain_of(other, taken);
  if (gain <= kAcceptedWait) return "";
  return fmt::format("{} would {}: {:.1f} times the samples/s", name_of(other, taken), wait_text(other, ""),
                     1 + gain);
}

ModeLoss loss_of(const ModePoint& point, const NamedWork& work, const ModelProfile& model, int peers,
                 double run_samples) {
  if (point.mode == "delayed")
    return {"", fmt::format("Measured loss after equal samples: delayed {:+.0f} % of sync's (docs/modes.md).",
                            100 * kDelayedLoss)};
  const double fragments = with_choice(work, point).fragments();
  const double steps =
      std::max(1.0, point.round_samples * fragments / (peers * std::max(1.0, model.microbatch)));
  const MeasuredLoss* nearest = nullptr;
  for (const MeasuredLoss& one : kLosses) {
    if (one.mode != point.mode) continue;
    const auto apart = [&](const MeasuredLoss& row) { return std::abs(std::log(row.steps / steps)); };
    if (nearest == nullptr || apart(one) < apart(*nearest)) nearest = &one;
  }
  if (nearest == nullptr) return {};
  const bool has_rounds = run_samples >= kRoundsOfMomentum * fragments * point.round_samples;
  const bool momentum = has_rounds && nearest->nesterov < nearest->mean;
  return {momentum ? "nesterov" : "mean",
          fmt::format(
              "{} with {:.0f} steps between averagings of a parameter; measured loss after equal samples, "
              "with {:.0f} steps: {:+.0f} % of sync's with outer nesterov, {:+.0f} % with mean "
              "(docs/modes.md).",
              point.mode, steps, nearest->steps, 100 * nearest->nesterov, 100 * nearest->mean)};
}

}  // namespace tw::plan
