// SPDX-License-Identifier: Apache-2.0
#include "plan/fit/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/median.h"
#include "plan/fit/least_squares.h"

namespace tw::plan {
namespace {

using Key = std::pair<std::string, std::string>;  ///< model and GPU

/// Larger errors count less and less.
constexpr double kSoftLimit = 0.06;
constexpr double kOnPremiseWeight = 0.4;
/// Weight of a round's error relative to its averaging's: users see the round.
constexpr double kRoundWeight = 2;

std::vector<std::string> gpus_of(const MeasuredRun& run) {
  std::vector<std::string> gpus;
  for (const PeerGroup& group : run.peers)
    if (std::find(gpus.begin(), gpus.end(), group.gpu) == gpus.end()) gpus.push_back(group.gpu);
  return gpus;
}

/// Speeds of GPUs in runs with only one kind.
std::map<Key, std::vector<double>> uniform_speeds(const std::vector<MeasuredRun>& runs) {
  std::map<Key, std::vector<double>> speeds;
  for (const MeasuredRun& run : runs) {
    if (!run.clean || gpus_of(run).size() != 1) continue;
    speeds[{run.model, run.peers.front().gpu}].push_back(run.local_sps / count_of(run.peers));
  }
  return speeds;
}

/// Speeds of GPUs in mixed runs with known other GPUs: the rest of the run's speed.
std::map<Key, std::vector<double>> mixed_speeds(const std::vector<MeasuredRun>& runs,
                                                const std::map<Key, std::vector<double>>& known) {
  std::map<Key, std::vector<double>> speeds;
  for (const MeasuredRun& run : runs) {
    double left = run.local_sps;
    const PeerGroup* unknown = nullptr;
    int unknowns = 0;
    for (const PeerGroup& group : run.peers) {
      const auto found = known.find({run.model, group.gpu});
      if (found != known.end()) {
        left -= group.count * median(found->second);
      } else {
        unknown = &group;
        ++unknowns;
      }
    }
    if (run.clean && unknowns == 1 && left > 0)
      speeds[{run.model, unknown->gpu}].push_back(left / unknown->count);
  }
  return speeds;
}

/// The range of 80 % of the speeds; for few speeds, at least 5 %.
MeasuredSpeed speed_from(const std::vector<double>& speeds, const std::string& what) {
  const double middle = median(speeds);
  std::vector<double> errors;
  for (const double speed : speeds) errors.push_back(std::abs(std::log(speed / middle)));
  std::sort(errors.begin(), errors.end());
  const auto fifth = static_cast<std::size_t>(std::lround(0.8 * static_cast<double>(errors.size() - 1)));
  const double factor = speeds.size() < 3 ? 1.05 : std::max(1.02, std::exp(errors[fifth]));
  return {middle, factor, fmt::format("median of {} {}", speeds.size(), what)};
}

HivemindLaw law_with(HivemindLaw law, const std::vector<double HivemindLaw::*>& constants,
                     const std::vector<double>& logs) {
  for (std::size_t k = 0; k < constants.size(); ++k) law.*constants[k] = std::exp(logs[k]);
  return law;
}

HivemindLaw fit(HivemindLaw law, const std::vector<double HivemindLaw::*>& constants,
                const std::function<std::vector<double>(const HivemindLaw&)>& errors) {
  std::vector<double> logs;
  for (const auto constant : constants) logs.push_back(std::log(law.*constant));
  const auto residuals = [&](const std::vector<double>& at) { return errors(law_with(law, constants, at)); };
  return law_with(law, constants, least_squares(logs, residuals, kSoftLimit));
}

bool has_on_premise(const MeasuredRun& run) {
  return std::any_of(run.peers.begin(), run.peers.end(),
                     [](const PeerGroup& group) { return on_premise(group.site); });
}

}  // namespace

Models models_from(const std::vector<MeasuredRun>& runs, const Models& models) {
  const auto uniform = uniform_speeds(runs);
  auto mixed = mixed_speeds(runs, uniform);
  Models result;
  for (auto [name, model] : models.all()) {
    model.accumulating.clear();
    for (const auto& [key, speeds] : mixed)
      if (key.first == name)
        model.accumulating[key.second] = speed_from(speeds, "mixed runs, less the others");
    for (const auto& [key, speeds] : uniform)
      if (key.first == name) model.accumulating[key.second] = speed_from(speeds, "runs");
    result.add(std::move(model));
  }
  return result;
}

HivemindLaw law_from(const std::vector<MeasuredRun>& runs, const Models& models,
                     const market::NetworkProfile& network, const HivemindLaw& start) {
  const auto rounds = [&](const HivemindLaw& law, const auto& add) {
    std::vector<double> errors;
    for (const MeasuredRun& run : runs) {
      const auto model = models.all().find(run.model);
      if (!run.clean || model == models.all().end()) continue;
      add(run, hivemind_round(model->second, run.peers, network, law, run.calc_s), errors);
    }
    return errors;
  };
  const auto times = [&](const HivemindLaw& law) {
    return rounds(law, [](const MeasuredRun& run, const HivemindRound& round, std::vector<double>& errors) {
      const double weight = has_on_premise(run) ? kOnPremiseWeight : 1;
      errors.push_back(weight * std::log(round.comm_s / run.comm_s));
      errors.push_back(weight * (has_on_premise(run) ? 1 : kRoundWeight) *
                       std::log((run.calc_s + round.comm_s) / run.round_s()));
    });
  };
  const auto bytes = [&](const HivemindLaw& law) {
    return rounds(law, [](const MeasuredRun& run, const HivemindRound& round, std::vector<double>& errors) {
      errors.push_back(std::log(round.sent_mb / run.sent_mb_per_peer));
    });
  };
  const HivemindLaw timed =
      fit(start,
          {&HivemindLaw::update_s, &HivemindLaw::update_s_per_m_params, &HivemindLaw::exchange_s_per_tensor,
           &HivemindLaw::lambda_host, &HivemindLaw::on_premise_host, &HivemindLaw::stream_gain,
           &HivemindLaw::on_premise_stream_gain},
          times);
  return fit(timed, {&HivemindLaw::sent_factor, &HivemindLaw::sent_mb}, bytes);
}

}  // namespace tw::plan
