// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/recommendation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/median.h"
#include "base/text/quantity.h"
#include "market/catalog.h"
#include "plan/advise/alternatives.h"
#include "plan/advise/remedies.h"
#include "plan/model/checkpoint_interval.h"
#include "plan/search/all_lost.h"

namespace tw::plan {
namespace {

std::string life_text(const market::LifetimeLaw& law) {
  const double hours = law.expected_h();
  if (!std::isfinite(hours)) return "nobody takes it";
  return fmt::format("lives {} h on average ({})", significant(hours, 4), law.name);
}

class Recommender {
 public:
  Recommender(const Job& job, const MarketSpace& market, SearchTold told = {})
      : job_(job), market_(market), search_(job, market, std::move(told)), space_(search_.space()) {}

  Result<Recommendation> run() { return job_.goal == Goal::pareto ? front() : best(); }

  /// Nothing: no plan keeps the limits.
  std::optional<Selection> least_of_goal() const {
    const Measure measure = job_.goal == Goal::cheapest ? Measure::usd : Measure::hours;
    SearchResult found = search_.least(measure, limits_of(job_), space_, kQuick);
    return found.best.empty() ? std::nullopt : std::optional(std::move(found.best.front()));
  }

  Option option_of(const std::string& name, const std::vector<int>& counts) const {
    const Expected expected = search_.expected_of(score_of(space_, counts));
    Option option{.name = name, .peers = groups_of(market_, counts), .counts = counts};
    option.bought = bought_text(counts);
    option.domains = domains_of(counts);
    for (std::size_t i = 0; i < counts.size(); ++i)
      option.estimated = option.estimated || (counts[i] > 0 && !market_.candidates[i].measured);
    option.samples_per_s = expected.samples_per_s;
    option.hours = expected.hours;
    option.usd = expected.usd;
    option.usd_per_h = expected.usd_per_h;
    option.slow_hours = expected.slow_hours;
    option.slow_usd = expected.slow_usd;
    option.usd_per_million = 1e6 * expected.usd / job_.samples;
    option.reads = reads_of(counts);
    option.reads.requests_per_s = option.samples_per_s / market_.samples_a_read;
    option.round = search_.averaging_of(counts);
    add_outcomes(option);
    return option;
  }

 private:
  void add_outcomes(Option& option) const {
    const Outcomes outcomes = search_.outcomes_of(option.counts);
    option.losses = outcomes.losses;
    option.hours_spread = spread_of(outcomes.hours);
    option.usd_spread = spread_of(outcomes.usd);
    option.risky_hours = quantile(outcomes.hours, 1 - job_.risk);
    option.risky_usd = quantile(outcomes.usd, 1 - job_.risk);
    const auto share_over = [](const std::vector<double>& values, double limit) {
      const auto over = std::ranges::count_if(values, [&](double value) { return value > limit; });
      return limit > 0 ? static_cast<double>(over) / static_cast<double>(values.size()) : 0;
    };
    option.late_share = share_over(outcomes.hours, job_.deadline_h);
    option.dear_share = share_over(outcomes.usd, job_.budget_usd);
  }

  Result<Recommendation> best() {
    const Limits limits = limits_of(job_);
    const SearchResult found = search_.best_by(measure_of(job_), limits, space_, {});
    if (found.best.empty()) return no_plan(search_);
    Recommendation plan{.exact = found.exact, .gap = found.gap()};
    plan.chosen = option_of("chosen", found.best.front().counts);
    add_others(limits, plan);
    add_front(plan);
    for (Option& other : plan.others) other.verdict = verdict_on(job_, other, plan.chosen);
    return plan;
  }

  /// The cheapest plans within time limits from the time of the cheapest down to that of the fastest.
  Result<Recommendation> front() const {
    const Limits limits = limits_of(job_);
    const SearchResult cheapest = any_by(Measure::usd, limits);
    if (cheapest.best.empty()) return no_plan(search_);
    const SearchResult fastest = any_by(Measure::hours, limits);
    const double slow_h = hours_of(cheapest);
    const double fast_h = fastest.best.empty() ? slow_h : hours_of(fastest);
    Recommendation plan{.exact = true, .gap = std::max(cheapest.gap(), fastest.gap())};
    for (int point = 0; point < kFrontPoints; ++point) {
      Limits within = limits;
      within.hours =
          slow_h * std::pow(fast_h / slow_h, static_cast<double>(point) / (kFrontPoints - 1)) * (1 + 1e-9);
      const SearchResult found = search_.best_by(Measure::usd, within, space_, kQuick);
      plan.exact = plan.exact && found.exact;
      plan.gap = std::max(plan.gap, found.gap());
      if (!found.best.empty()) plan.front.push_back(option_of("front", found.best.front().counts));
    }
    if (plan.front.empty()) plan.front.push_back(option_of("front", cheapest.best.front().counts));
    return choose_from(limits, std::move(plan));
  }

  /// A quick search whose effort was spent before it met a plan does not say that there is none.
  SearchResult any_by(Measure measure, const Limits& limits) const {
    SearchResult found = search_.best_by(measure, limits, space_, kQuick);
    if (found.best.empty() && found.steps >= kQuick.steps)
      found = search_.best_by(measure, limits, space_, {});
    return found;
  }

  double hours_of(const SearchResult& found) const {
    return search_.expected_of(found.best.front().score).hours;
  }

  Result<Recommendation> choose_from(const Limits& limits, Recommendation plan) const {
    std::vector<Option> kept;
    for (Option& one : plan.front) {
      const bool new_one =
          kept.empty() || (one.hours < kept.back().hours && one.counts != kept.back().counts);
      if (new_one) kept.push_back(std::move(one));
    }
    if (kept.empty()) return no_plan(search_);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i].name = fmt::format("front {}", i + 1);
    const auto asked = std::min(static_cast<std::size_t>(job_.front_point), kept.size());
    const std::size_t chosen = asked > 0 ? asked - 1 : knee_of(kept);
    plan.front = std::move(kept);
    plan.chosen = plan.front[chosen];
    add_others(limits, plan);
    for (auto* options : {&plan.front, &plan.others})
      for (Option& other : *options) other.verdict = verdict_on(job_, other, plan.chosen);
    return plan;
  }

  /// The point farthest below the straight line from the first to the last, both axes logarithmic (Satopaa et
  /// al. 2011).
  static std::size_t knee_of(const std::vector<Option>& front) {
    const auto share = [](double value, double from, double to) {
      return to == from ? 0.0 : std::log(value / from) / std::log(to / from);
    };
    std::size_t knee = 0;
    double farthest = 0;
    for (std::size_t i = 0; i < front.size(); ++i) {
      const double time = share(front[i].hours, front.back().hours, front.front().hours);
      const double cost = share(front[i].usd, front.front().usd, front.back().usd);
      if (1 - time - cost <= farthest) continue;
      farthest = 1 - time - cost;
      knee = i;
    }
    return knee;
  }

  /// How the machines are paid for.
  std::string bought_text(const std::vector<int>& counts) const {
    std::map<market::Purchase, int> machines;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) machines[market_.candidates[i].offer.purchase] += counts[i];
    std::string text;
    for (const auto& [purchase, count] : machines) {
      if (!text.empty()) text += ", ";
      if (machines.size() > 1) text += fmt::format("{} ", count);
      text += to_string(purchase);
    }
    return text;
  }

  /// The reads of the machine whose network card has the least to spare.
  ReadRate reads_of(const std::vector<int>& counts) const {
    ReadRate most;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0 && market_.candidates[i].reads.share() > most.share())
        most = market_.candidates[i].reads;
    return most;
  }

  int domains_of(const std::vector<int>& counts) const {
    std::set<int> domains;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) domains.insert(space_.choices[i].domain);
    return static_cast<int>(domains.size());
  }

  std::optional<Selection> best_of(const Limits& limits, const Space& space) const {
    const SearchResult found = search_.best_by(measure_of(job_), limits, space, kQuick);
    return found.best.empty() ? std::nullopt : std::optional(found.best.front());
  }

  /// None but that of the price per hour.
  Limits price_alone() const { return {.usd_per_h = job_.budget_usd_per_h}; }

  /// Without limits that cannot be met.
  void add_baseline(const std::string& name, const Limits& limits, const Space& space,
                    Recommendation& plan) const {
    Space any = space;
    any.least_domains = 1;
    auto best = best_of(limits, space);
    if (!best) best = best_of(limits, any);
    if (!best) best = best_of(price_alone(), any);
    if (best) plan.others.push_back(option_of(name, best->counts));
  }

  /// The best plan of another kind, or the one that misses the limits least.
  void add_kind(const std::string& name, const Limits& limits, const Space& space,
                Recommendation& plan) const {
    auto best = best_of(limits, space);
    if (!best) {
      const Measure missed = limits.hours > 0 ? Measure::hours : Measure::usd;
      const SearchResult nearest = search_.best_by(missed, price_alone(), space, kQuick);
      if (nearest.best.empty()) return;
      best = nearest.best.front();
    }
    plan.others.push_back(option_of(name, best->counts));
  }

  /// The candidate of which most speed comes.
  std::size_t main_candidate(const std::vector<int>& counts) const {
    const auto speed = [&](std::size_t i) { return counts[i] * market_.candidates[i].samples_per_s; };
    std::size_t most = 0;
    for (std::size_t i = 1; i < counts.size(); ++i)
      if (speed(i) > speed(most)) most = i;
    return most;
  }

  template <class Excluded>
  Space space_without(Excluded excluded) const {
    Space space = space_;
    for (std::size_t i = 0; i < space.choices.size(); ++i)
      if (excluded(market_.candidates[i].offer)) space.choices[i].most = 0;
    return space;
  }

  /// What else there is: the next GPU, the next cloud, fewer machines; then plain ways of renting.
  void add_others(const Limits& limits, Recommendation& plan) const {
    const market::Offer& main = market_.candidates[main_candidate(plan.chosen.counts)].offer;
    add_kind("without " + main.gpu, limits,
             space_without([&](const market::Offer& one) { return one.gpu == main.gpu; }), plan);
    add_kind("without " + main.provider, limits,
             space_without([&](const market::Offer& one) { return one.provider == main.provider; }), plan);
    Space fewer = space_;
    fewer.most_peers = count_of(plan.chosen.peers) / 2;
    if (fewer.most_peers > 0) add_kind("half as many", limits, fewer, plan);
    add_baselines(limits, plan);
  }

  void add_baselines(const Limits& limits, Recommendation& plan) const {
    Space one_site = space_;
    one_site.least_domains = 1;
    one_site.most_sites = 1;
    add_baseline("one site", limits, one_site, plan);
    Space space = space_;
    for (std::size_t i = 0; i < space.choices.size(); ++i)
      if (market_.candidates[i].offer.purchase == market::Purchase::spot) space.choices[i].most = 0;
    add_baseline("on-demand only", limits, space, plan);
  }

  void add_front(Recommendation& plan) const {
    const SearchResult most = search_.best_by(Measure::hours, price_alone(), space_, kQuick);
    if (most.best.empty()) return;
    const double highest = search_.expected_of(most.best.front().score).usd_per_h;
    for (int point = 1; point <= kFrontPoints; ++point) {
      const Limits limits{.usd_per_h = highest * point / kFrontPoints};
      const SearchResult found = search_.best_by(Measure::hours, limits, space_, kQuick);
      if (found.best.empty()) continue;
      const auto& counts = found.best.front().counts;
      if (!plan.front.empty() && plan.front.back().counts == counts) continue;
      plan.front.push_back(option_of("front", counts));
    }
  }

  const Job& job_;
  const MarketSpace& market_;
  LimitedSearch search_;
  const Space& space_;
};

void add_checkpoints(const MarketSpace& market, Recommendation& plan) {
  const Checkpoints checkpoints = checkpoints_of(market.space, plan.chosen.counts);
  plan.checkpoint_s = checkpoints.cost.checkpoint_s;
  if (checkpoints.interval_s <= 0) return;
  plan.checkpoint_interval_s = checkpoints.interval_s;
  plan.all_lost_h = checkpoints.cost.mtbf_s / 3600;
  plan.checkpoint_share = 1 - 1 / checkpoints.wall_per_work();
  plan.young_s = young_interval_s(checkpoints.cost);
  plan.daly_s = daly_interval_s(checkpoints.cost);
}

void add_assumptions(const MarketSpace& market, std::int64_t now_unix_s, Recommendation& plan) {
  std::set<std::string> uncharged, several;
  const bool sends = count_of(plan.chosen.peers) > 1;
  for (std::size_t i = 0; i < plan.chosen.counts.size(); ++i) {
    if (plan.chosen.counts[i] == 0) continue;
    const Candidate& one = market.candidates[i];
    const bool owned = one.offer.purchase == market::Purchase::owned;
    plan.assumptions.push_back(
        fmt::format("{}@{}: {} $/h {}, {}{}{}", machine_name(one.offer), to_string(site_of(one.offer)),
                    significant(one.usd_per_h, 4), to_string(one.offer.purchase), one.offer.source,
                    owned ? "" : ", " + price_age_text(one.offer, now_unix_s),
                    is_old(one.offer, now_unix_s) ? " (older than 7 h: tw catalog update)" : ""));
    plan.assumptions.push_back(fmt::format("{}@{}: {} samples/s, {}; {}", machine_name(one.offer),
                                           to_string(site_of(one.offer)), significant(one.samples_per_s, 4),
                                           one.speed_source, life_text(one.lifetimes)));
    if (one.free_traffic && sends) uncharged.insert(one.offer.provider);
    const std::string machine = machine_name(one.offer);
    if (const std::string text = several_gpus_text(machine, one.measured); !text.empty())
      several.insert(fmt::format("{}; exclude: [{}] in JOB.yaml keeps such machines out", text, machine));
  }
  for (const std::string& text : several) plan.assumptions.push_back(text);
  for (const std::string& provider : uncharged) plan.assumptions.push_back(uncharged_text(provider));
  plan.assumptions.push_back(market.data);
  for (const std::string& left_out : market.left_out) plan.assumptions.push_back(left_out);
}

void complete(const Job& job, const MarketSpace& market, std::int64_t now_unix_s, Recommendation& plan) {
  add_checkpoints(market, plan);
  add_assumptions(market, now_unix_s, plan);
  plan.alternatives = alternatives_of(job, market, plan.chosen.counts);
}

}  // namespace

Option evaluate(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                const std::string& name) {
  return Recommender(job, market).option_of(name, counts);
}

namespace {

/// What the search does not look for is no difference.
constexpr double kNoDifference = 1e-4;

/// "19.67 $ less", "102 h longer"; empty: as much.
std::string difference_text(double other, double chosen, int digits, std::array<const char*, 3> words) {
  const auto [unit, more, less] = words;
  if (std::abs(other - chosen) <= kNoDifference * std::abs(chosen)) return "";
  return fmt::format("{} {} {}", significant(std::abs(other - chosen), digits), unit,
                     other < chosen ? less : more);
}

}  // namespace

std::string losses_text(double losses) {
  constexpr double kRare = 0.5;
  if (losses == 0) return "no machine is taken";
  if (losses < kRare) return fmt::format("1 run in {:.0f} loses a machine", 1 / losses);
  return fmt::format("{} machines are taken in the mean", significant(losses, 2));
}

std::string missed_limit(const Job& job, const Option& option) {
  if (job.deadline_h > 0 && option.hours > job.deadline_h)
    return fmt::format("misses the deadline by {} h", significant(option.hours - job.deadline_h, 3));
  if (job.budget_usd > 0 && option.usd > job.budget_usd)
    return fmt::format("exceeds the budget by {} $", significant(option.usd - job.budget_usd, 4));
  if (job.budget_usd_per_h > 0 && option.usd_per_h > job.budget_usd_per_h * (1 + 1e-9))
    return fmt::format("exceeds the budget per hour by {} $",
                       significant(option.usd_per_h - job.budget_usd_per_h, 3));
  if (option.domains < job.domains_min)
    return fmt::format("has {} failure domain{}, not {}",
                       option.domains == 1 ? "one" : std::to_string(option.domains),
                       option.domains == 1 ? "" : "s", job.domains_min);
  if (job.deadline_h > 0 && option.risky_hours > job.deadline_h)
    return fmt::format("misses the deadline in {:.0f} % of the scenarios", 100 * option.late_share);
  if (job.budget_usd > 0 && option.risky_usd > job.budget_usd)
    return fmt::format("exceeds the budget in {:.0f} % of the scenarios", 100 * option.dear_share);
  if (job.deadline_h > 0 && option.slow_hours > job.deadline_h)
    return fmt::format("misses the deadline by {} h at the speed of risk {:g}",
                       significant(option.slow_hours - job.deadline_h, 3), job.risk);
  if (job.budget_usd > 0 && option.slow_usd > job.budget_usd)
    return fmt::format("exceeds the budget by {} $ at the speed of risk {:g}",
                       significant(option.slow_usd - job.budget_usd, 4), job.risk);
  return "";
}

std::string verdict_on(const Job& job, const Option& other, const Option& chosen) {
  if (other.counts == chosen.counts) return "is the chosen one";
  if (std::string missed = missed_limit(job, other); !missed.empty()) return missed;
  const std::string usd = difference_text(other.usd, chosen.usd, 4, {"$", "more", "less"});
  const std::string hours = difference_text(other.hours, chosen.hours, 3, {"h", "longer", "shorter"});
  if (usd.empty() && hours.empty()) return "costs and takes as much";
  return usd + (usd.empty() || hours.empty() ? "" : ", ") + hours;
}

Recommendation described(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                         const std::string& name, std::int64_t now_unix_s) {
  Recommendation plan{.chosen = evaluate(job, market, counts, name)};
  complete(job, market, now_unix_s, plan);
  return plan;
}

double least_of_goal(const Job& job, const MarketSpace& market) {
  const auto best = Recommender(job, market).least_of_goal();
  return best ? best->value : std::numeric_limits<double>::infinity();
}

std::optional<Option> quick_plan(const Job& job, const MarketSpace& market) {
  const Recommender recommender(job, market);
  const auto best = recommender.least_of_goal();
  return best ? std::optional(recommender.option_of("quick", best->counts)) : std::nullopt;
}

Result<Recommendation> recommend(const Job& job, const MarketSpace& market, std::int64_t now_unix_s,
                                 const SearchTold& told) {
  auto plan = Recommender(job, market, told).run();
  if (!plan) return plan.error();
  complete(job, market, now_unix_s, plan.value());
  return plan;
}

}  // namespace tw::plan
