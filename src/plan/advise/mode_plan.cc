// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/mode_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/averaging_wait.h"
#include "base/result.h"
#include "base/text/number.h"
#include "base/text/quantity.h"

namespace tw::plan {
namespace {

constexpr int kMostPlans = 6;
/// Batches that differ by less than this part are planned alike.
constexpr double kSameBatch = 0.1;

/// The machines of a plan, with the memory of their offers.
std::vector<PeerGroup> peers_of(const MarketSpace& market, const Option& option) {
  std::vector<PeerGroup> peers = option.peers;
  for (PeerGroup& group : peers)
    for (const Candidate& one : market.candidates)
      if (machine_name(one.offer) == group.gpu && site_of(one.offer) == group.site)
        group.gpu_memory_gib = std::max(group.gpu_memory_gib, one.offer.gpu_memory_gib);
  return peers;
}

class ModePlanner {
 public:
  explicit ModePlanner(const ModePlanInputs& inputs)
      : inputs_(inputs), choices_(choices_of(inputs.job, inputs.job.open)) {}

  Result<ModePlan> run() {
    TW_TRY(go_by_goal());
    Job job = with_choice(inputs_.job, choices_[at_]);
    std::optional<ModePlan> last;
    for (int plans = 1;; ++plans) {
      Result<ModePlan> planned = plan_of(job);
      if (!planned) return last ? Result<ModePlan>(*std::move(last)) : planned;
      const std::vector<PeerGroup> peers = peers_of(planned.value().market, planned.value().plan.chosen);
      const auto choice = choose_mode(question(peers, inputs_.job.open), at_);
      if (!choice) return without_reasons(std::move(planned).value(), choice.error());
      const ModePoint& best = choice.value().best();
      // With fewer samples, traffic would cost more, and other machines would be best.
      const bool is_planned =
          choice.value().chosen == at_ &&
          (best.is_enlarged ? best.round_samples <= job.target_batch_size * (1 + kSameBatch)
                            : std::abs(best.round_samples / job.target_batch_size - 1) <= kSameBatch);
      last = with_reasons(std::move(planned).value(), peers, planned_one(choice.value(), peers, job));
      if (is_planned || plans == kMostPlans) return *std::move(last);
      at_ = choice.value().chosen;
      job = with_choice(inputs_.job, best);
    }
  }

 private:
  ModeQuestion question(const std::vector<PeerGroup>& peers, const std::set<std::string>& open) const {
    return {inputs_.job, inputs_.workload, peers, inputs_.knowledge, open};
  }

  Status go_by_goal() {
    if (choices_.size() == 1) return Unit{};
    double least = kInfinity;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      const Job job = with_choice(inputs_.job, choices_[choice]);
      TW_TRY(const auto market, inputs_.market_of(job));
      const double value = least_of_goal(job, market);
      if (!(value * (1 + kAcceptedWait) < least)) continue;
      least = value;
      at_ = choice;
    }
    if (std::isinf(least)) at_ = choices_.size() - 1;
    return choices_[at_].is_enlarged && !std::isinf(least) ? shrink_batch(least) : Unit{};
  }

  /// To the fewest samples a round, by doublings, whose best plan is nearly as good: more cost convergence.
  Status shrink_batch(double least) {
    const double most = choices_[at_].round_samples;
    for (double batch = inputs_.job.target_batch_size; batch < most; batch *= 2) {
      choices_[at_].round_samples = batch;
      const Job job = with_choice(inputs_.job, choices_[at_]);
      TW_TRY(const auto market, inputs_.market_of(job));
      if (least_of_goal(job, market) <= least * (1 + kAcceptedWait)) return Unit{};
    }
    choices_[at_].round_samples = most;
    return Unit{};
  }

  /// Goes to later choices where this one keeps the limits in too few scenarios.
  Result<ModePlan> plan_of(Job& job) {
    while (true) {
      TW_TRY(auto market, inputs_.market_of(job));
      auto plan = recommend(job, market, inputs_.now_unix_s, inputs_.told);
      if (plan) return ModePlan{job, std::move(market), std::move(plan).value()};
      if (at_ + 1 == choices_.size()) return plan.error();
      job = with_choice(inputs_.job, choices_[++at_]);
    }
  }

  /// What the machines were planned for, even where another choice is better on them.
  ModeChoice planned_one(ModeChoice choice, const std::vector<PeerGroup>& peers, const Job& job) const {
    choice.chosen = at_;
    ModePoint& point = choice.points.at(at_);
    const auto planned = predict_mode({job, inputs_.workload, peers, inputs_.knowledge}, job.mode, false);
    if (planned) point.prediction = planned.value().prediction;
    point.round_samples = job.target_batch_size;
    return choice;
  }

  static ModePlan without_reasons(ModePlan planned, const Error& error) {
    planned.plan.mode_reasons = {"Modes are not compared: " + error.message};
    return planned;
  }

  ModePlan with_reasons(ModePlan planned, const std::vector<PeerGroup>& peers,
                        const ModeChoice& choice) const {
    const ModePoint& best = choice.best();
    std::vector<std::string> reasons = {reason_of(choice)};
    if (const std::size_t other = cheapest_of(choice.points).chosen; other < choice.chosen)
      reasons.push_back(by_goal_text(choices_[other], planned.plan.chosen));
    if (std::string text = kept_text(peers, best); !text.empty()) reasons.push_back(std::move(text));
    const ModeLoss loss =
        loss_of(best, planned.job, inputs_.workload.model, count_of(peers), planned.job.samples);
    if (!loss.text.empty()) reasons.push_back(loss.text);
    if (planned.job.open.contains("mode") && planned.job.open.contains("outer"))
      planned.job.outer = loss.outer;
    if (best.codec == "int8" || best.codec == "int4")
      reasons.push_back(fmt::format(
          "{}: loss up to 1.4 % higher (docs/benchmarks.md); models with BatchNorm need buffers=\"local\".",
          best.codec));
    planned.plan.mode_reasons = std::move(reasons);
    planned.plan.modes = choice.points;
    return planned;
  }

  /// Why the plan has another choice than one that costs less in convergence, and is nearly as fast on these
  /// machines.
  std::string by_goal_text(const ModePoint& other, const Option& chosen) const {
    const Job job = with_choice(inputs_.job, other);
    const auto market = inputs_.market_of(job);
    const auto best = market ? quick_plan(job, market.value()) : std::nullopt;
    const std::string name =
        fmt::format("{} in {} is nearly as fast on these machines, but ", other.mode, other.codec);
    if (!best) return name + "no plan with it keeps the limits.";
    return name + fmt::format("its best plan is worse: {}, {} h and {} $, to {} h and {} $ here.",
                              to_string(best->peers), significant(best->hours, 3), significant(best->usd, 4),
                              significant(chosen.hours, 3), significant(chosen.usd, 4));
  }

  /// What JOB or its run file names, where another choice is better on these machines.
  std::string kept_text(const std::vector<PeerGroup>& peers, const ModePoint& taken) const {
    std::vector<std::string> kept;
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"mode", taken.mode},
                                     {"codec", taken.codec},
                                     {"tbs", fmt::format("{:.0f}", taken.round_samples)}})
      if (!inputs_.job.open.contains(key)) kept.push_back(key + ": " + value);
    if (kept.empty()) return "";
    const auto open = choose_mode(question(peers, {"mode", "codec", "tbs"}));
    const std::string better = open ? better_text(taken, open.value().best()) : "";
    if (better.empty()) return "";
    return fmt::format("The job names {}; that is kept. {}.", fmt::join(kept, ", "), better);
  }

  const ModePlanInputs& inputs_;
  std::vector<ModePoint> choices_;
  std::size_t at_ = 0;
};

}  // namespace

Result<ModePlan> recommend_with_mode(const ModePlanInputs& inputs) {
  if (has_modes(inputs.job.pattern)) return ModePlanner(inputs).run();
  TW_TRY(auto market, inputs.market_of(inputs.job));
  TW_TRY(auto plan, recommend(inputs.job, market, inputs.now_unix_s, inputs.told));
  return ModePlan{inputs.job, std::move(market), std::move(plan)};
}

}  // namespace tw::plan
