// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/limited_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/median.h"
#include "plan/search/all_lost.h"

namespace tw::plan {
namespace {

constexpr double kCannotRun = std::numeric_limits<double>::infinity();
constexpr double kAveragingFactor = 1.25;  ///< of the 80 % range of derived rounds (plan/model/round_time.cc)
constexpr double kNotice_s = 30;           ///< enough to hand over the sums
constexpr double kSameTime = 1e-3;         ///< by how much a plan may be slower and still count as fast
constexpr double kSameUsd = 1e-9;          ///< rounding

/// The same in each market (FNV-1a).
int domain_number(const std::string& name) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return static_cast<int>(hash >> 1);
}

bool is_over(double value, double limit) { return limit > 0 && !(value <= limit); }

bool keeps_price(const Score& score, const Limits& limits) {
  return !is_over(score.usd_per_h(), limits.usd_per_h * (1 + kSameUsd));
}

/// A bound for all plans that keep the price and are no better than this score. Where it does not keep it,
/// they are slower: traffic costs by the sample.
Score at_most(Score score, const Limits& limits) {
  if (keeps_price(score, limits)) return score;
  const double left_usd = std::max(0.0, limits.usd_per_h - score.vm_usd_per_h);
  const double most = left_usd > 0 ? left_usd / (3600 * score.usd_per_sample) : 0;
  score.samples_per_s = std::min(score.samples_per_s, most);
  score.slow_samples_per_s = std::min(score.slow_samples_per_s, most);
  return score;
}

}  // namespace

Limits limits_of(const Job& job) {
  return {.hours = job.deadline_h,
          .usd = job.budget_usd,
          .usd_per_h = job.budget_usd_per_h,
          .risky_hours = job.deadline_h,
          .risky_usd = job.budget_usd};
}

Measure measure_of(const Job& job) { return job.goal == Goal::fastest ? Measure::hours : Measure::usd; }

LimitedSearch::LimitedSearch(const Job& job, const MarketSpace& market, SearchTold told)
    : job_(job), market_(market), told_(std::move(told)), space_(market.space) {
  const double luck = worst_luck(job.risk);
  for (std::size_t i = 0; i < space_.choices.size(); ++i) {
    const Candidate& one = market.candidates[i];
    space_.choices[i].start_h = one.start_s / 3600;
    if (job.deadline_h > 0 || job.budget_usd > 0)
      space_.choices[i].slow_samples_per_s =
          space_.choices[i].samples_per_s * error_of(one.speed_factor, luck);
  }
  // Averaging that is hidden is the least time of a round; its error is not drawn.
  if (!space_.delayed) space_.slow_averaging = error_of(kAveragingFactor, -luck);
}

Expected LimitedSearch::expected_of(const Score& score) const {
  const auto hours_at = [&](double speed) {
    return speed > 0 ? score.start_h + job_.samples / speed / 3600 : kCannotRun;
  };
  const auto usd_of = [&](double hours) {
    return hours * score.vm_usd_per_h + job_.samples * score.usd_per_sample;
  };
  Expected plan;
  plan.samples_per_s = score.samples_per_s;
  plan.hours = hours_at(plan.samples_per_s);
  plan.usd = usd_of(plan.hours);
  plan.usd_per_h = score.usd_per_h();
  plan.slow_hours = hours_at(score.slow_samples_per_s);
  plan.slow_usd = usd_of(plan.slow_hours);
  return plan;
}

SearchResult LimitedSearch::least(Measure measure, const Limits& limits, const Space& space,
                                  Effort effort) const {
  const auto value_of = [&](const Score& score) {
    const Expected plan = expected_of(at_most(score, limits));
    if (is_over(plan.hours, limits.hours) || is_over(plan.usd, limits.usd)) return kCannotRun;
    if (is_over(plan.slow_hours, limits.risky_hours) || is_over(plan.slow_usd, limits.risky_usd))
      return kCannotRun;
    if (measure == Measure::hours) return plan.hours;
    if (measure == Measure::usd) return plan.usd;
    if (measure == Measure::safe_hours) return std::max(plan.hours, plan.slow_hours);
    return measure == Measure::safe_usd ? std::max(plan.usd, plan.slow_usd) : score.vm_usd_per_h;
  };
  Space judged = space;
  if (limits.usd_per_h > 0) judged.keeps = [&](const Score& score) { return keeps_price(score, limits); };
  if (limits.risky_hours > 0 || limits.risky_usd > 0)
    judged.accepts = [&](const std::vector<int>& counts) {
      const Needs risky = risky_of(counts);
      return !is_over(risky.hours, limits.risky_hours) && !is_over(risky.usd, limits.risky_usd);
    };
  return search(judged, value_of, effort, told_);
}

SearchResult LimitedSearch::best_by(Measure measure, const Limits& limits, const Space& space,
                                    Effort effort) const {
  SearchResult found = least(measure, limits, space, effort);
  if (found.best.empty()) return found;
  const double value = found.best.front().value;
  Limits equal = limits;
  if (measure == Measure::hours) equal.hours = value * (1 + kSameTime);
  if (measure == Measure::usd) equal.usd = value * (1 + kSameUsd) + kSameUsd;
  if (limits.hours > 0) equal.hours = std::min(equal.hours, limits.hours);
  if (limits.usd > 0) equal.usd = std::min(equal.usd, limits.usd);
  const Measure other = measure == Measure::hours ? Measure::usd : Measure::hours;
  SearchResult equals = least(other, equal, space, kQuick);
  if (equals.best.empty()) return found;
  Selection best = std::move(equals.best.front());
  const Expected plan = expected_of(best.score);
  best.value = measure == Measure::hours ? plan.hours : plan.usd;
  std::erase_if(found.best, [&](const Selection& one) { return one.counts == best.counts; });
  if (!found.best.empty() && found.best.front().value <= best.value) found.best.erase(found.best.begin());
  found.best.insert(found.best.begin(), std::move(best));
  return found;
}

PlannedRun LimitedSearch::planned(const std::vector<int>& counts) const {
  PlannedRun run{.samples = job_.samples,
                 .samples_per_round = space_.samples_per_round,
                 .usd_per_sample = space_.usd_per_sample + dearer_reads_usd(space_, counts)};
  std::vector<int> peers(space_.sites);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Candidate& one = market_.candidates[i];
    peers[space_.choices[i].site] += counts[i];
    for (int n = 0; n < counts[i]; ++n)
      run.machines.push_back({.samples_per_s = one.samples_per_s,
                              .factor = one.speed_factor,
                              .usd_per_h = one.usd_per_h,
                              .lifetimes = one.lifetimes,
                              .wait_s = one.start_s - one.join_s,
                              .join_s = one.join_s,
                              .notice = one.offer.notice_s >= kNotice_s,
                              .saves = one.offer.notice_s >= space_.checkpoint_s,
                              .spot = one.offer.purchase == market::Purchase::spot,
                              .domain = domain_number(one.offer.failure_domain)});
  }
  if (run.machines.size() > 1) run.round = space_.averaging(peers);
  run.round_factor = kAveragingFactor;
  run.shocks = job_.shocks;
  const Checkpoints checkpoints = checkpoints_of(space_, counts);
  run.checkpoint_s = checkpoints.cost.checkpoint_s;
  run.checkpoint_interval_s = checkpoints.interval_s;
  return run;
}

Outcomes LimitedSearch::outcomes_of(const std::vector<int>& counts) const {
  PlannedRun run = planned(counts);
  if (space_.delayed) run.round.calc_s = std::max(run.round.calc_s, std::exchange(run.round.seconds, 0));
  return play_scenarios(run);
}

LimitedSearch::Needs LimitedSearch::risky_of(const std::vector<int>& counts) const {
  const auto known = risky_.find(counts);
  if (known != risky_.end()) return known->second;
  const Outcomes outcomes = outcomes_of(counts);
  const Needs risky{quantile(outcomes.hours, 1 - job_.risk), quantile(outcomes.usd, 1 - job_.risk)};
  risky_[counts] = risky;
  return risky;
}

LimitedSearch::Needs LimitedSearch::needs_of(const std::vector<int>& counts) const {
  const Expected plan = expected_of(score_of(space_, counts));
  const Needs risky = risky_of(counts);
  return {std::max({plan.hours, plan.slow_hours, risky.hours}),
          std::max({plan.usd, plan.slow_usd, risky.usd})};
}

}  // namespace tw::plan
