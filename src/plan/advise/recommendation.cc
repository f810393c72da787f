// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/recommendation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
#include "plan/model/checkpoint_interval.h"

namespace tw::plan {
namespace {

constexpr double kNotAllowed = std::numeric_limits<double>::infinity();
constexpr int kTries = 4;  ///< to keep the limits in as many scenarios as the risk requires
constexpr int kFrontPoints = 10;
constexpr int kMostPeers = 256;                            ///< of a job (plan/input/job_yaml.cc)
constexpr Effort kQuick{.steps = 60'000, .exact = false};  ///< for mere comparisons
constexpr double kAveragingFactor = 1.25;  ///< of the 80 % range of derived rounds (plan/model/round_time.cc)
constexpr double kNotice_s = 30;           ///< enough to hand over the sums
constexpr double kSameTime = 1e-3;         ///< by how much a plan may be slower and still count as fast
constexpr double kSameUsd = 1e-9;          ///< rounding

/// 0: no limit.
struct Limits {
  double hours = 0;
  double usd = 0;
  double usd_per_h = 0;
};

std::string life_text(const market::LifetimeLaw& law) {
  const double hours = law.expected_h();
  if (!std::isfinite(hours)) return "nobody takes it";
  return fmt::format("lives {} h on average ({})", significant(hours, 4), law.name);
}

Limits limits_of(const Job& job) { return {job.deadline_h, job.budget_usd, job.budget_usd_per_h}; }

struct Expected {
  double samples_per_s = 0;
  double hours = 0;
  double usd = 0;
  double usd_per_h = 0;
};

/// If machines and traffic would cost more per hour than allowed, rounds are slowed down until they do not.
Expected expected_of(const Job& job, const Score& score, double most_usd_per_h, double start_h) {
  double speed = score.samples_per_s;
  if (most_usd_per_h > 0 && score.usd_per_h() > most_usd_per_h)
    speed = std::max(0.0, most_usd_per_h - score.vm_usd_per_h) / (3600 * score.usd_per_sample);
  const double hours = speed > 0 ? start_h + job.samples / speed / 3600 : kNotAllowed;
  const double usd_per_h = score.vm_usd_per_h + 3600 * speed * score.usd_per_sample;
  return {speed, hours, hours * score.vm_usd_per_h + job.samples * score.usd_per_sample, usd_per_h};
}

enum class Measure { hours, usd, usd_per_h };

/// Minimises a measure within the limits.
Objective objective_of(const Job& job, Measure measure, Limits limits, double start_h) {
  return [&job, measure, limits, start_h](const Score& score) {
    const Expected plan = expected_of(job, score, limits.usd_per_h, start_h);
    if (limits.hours > 0 && !(plan.hours <= limits.hours)) return kNotAllowed;
    if (limits.usd > 0 && !(plan.usd <= limits.usd)) return kNotAllowed;
    if (measure == Measure::usd_per_h) return score.vm_usd_per_h;
    return measure == Measure::hours ? plan.hours : plan.usd;
  };
}

Measure measure_of(const Job& job) { return job.goal == Goal::fastest ? Measure::hours : Measure::usd; }

class Recommender {
 public:
  Recommender(const Job& job, const MarketSpace& market, SearchTold told = {})
      : job_(job), market_(market), told_(std::move(told)) {
    for (const Candidate& one : market.candidates) start_h_ = std::max(start_h_, one.start_s / 3600);
  }

  Result<Recommendation> run() { return job_.goal == Goal::pareto ? front() : best(); }

  double least_of_goal() const {
    const Measure measure = job_.goal == Goal::cheapest ? Measure::usd : Measure::hours;
    const SearchResult found =
        search(market_.space, objective_of(job_, measure, limits_of(job_), start_h_), kQuick, told_);
    return found.best.empty() ? kNotAllowed : found.best.front().value;
  }

  Option option_of(const std::string& name, const std::vector<int>& counts) const {
    const Score score = score_of(market_.space, counts);
    const Expected expected = expected_of(job_, score, job_.budget_usd_per_h, start_h_);
    Option option{.name = name, .peers = groups_of(market_, counts), .counts = counts};
    option.bought = bought_text(counts);
    for (std::size_t i = 0; i < counts.size(); ++i)
      option.estimated = option.estimated || (counts[i] > 0 && !market_.candidates[i].measured);
    option.samples_per_s = expected.samples_per_s;
    option.hours = expected.hours;
    option.usd = expected.usd;
    option.usd_per_h = expected.usd_per_h;
    option.usd_per_million = 1e6 * expected.usd_per_h / (3600 * expected.samples_per_s);
    option.reads = reads_of(counts);
    option.reads.requests_per_s = option.samples_per_s / market_.samples_a_read;
    PlannedRun run = planned(counts);
    option.round = run.round;
    // Averaging that is hidden is the least time of a round; its error is not drawn.
    if (market_.space.delayed)
      run.round.calc_s = std::max(run.round.calc_s, std::exchange(run.round.seconds, 0));
    const Outcomes outcomes = play_scenarios(run);
    option.losses = outcomes.losses;
    option.hours_spread = spread_of(outcomes.hours);
    option.usd_spread = spread_of(outcomes.usd);
    option.risky_hours = quantile(outcomes.hours, 1 - job_.risk);
    option.risky_usd = quantile(outcomes.usd, 1 - job_.risk);
    return option;
  }

 private:
  /// The least of a measure. Where plans are equal in it, cost decides among the fastest, time among the
  /// cheapest.
  SearchResult best_by(Measure measure, const Limits& limits, const Space& space, Effort effort) const {
    const Objective first = objective_of(job_, measure, limits, start_h_);
    SearchResult found = search(space, first, effort, told_);
    if (found.best.empty()) return found;
    const double least = found.best.front().value;
    Limits equal = limits;
    if (measure == Measure::hours) equal.hours = least * (1 + kSameTime);
    if (measure == Measure::usd) equal.usd = least * (1 + kSameUsd) + kSameUsd;
    if (limits.hours > 0) equal.hours = std::min(equal.hours, limits.hours);
    const Measure other = measure == Measure::hours ? Measure::usd : Measure::hours;
    SearchResult equals = search(space, objective_of(job_, other, equal, start_h_), kQuick, told_);
    if (equals.best.empty()) return found;
    Selection best = std::move(equals.best.front());
    best.value = first(best.score);
    std::erase_if(found.best, [&](const Selection& one) { return one.counts == best.counts; });
    if (!found.best.empty() && found.best.front().value <= best.value) found.best.erase(found.best.begin());
    found.best.insert(found.best.begin(), std::move(best));
    return found;
  }

  Result<Recommendation> best() {
    Limits limits = limits_of(job_);
    SearchResult found;
    Recommendation plan;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      found = best_by(measure_of(job_), limits, market_.space, {});
      if (found.best.empty()) return attempt == 0 ? infeasible() : too_risky(plan);
      plan.chosen = option_of("chosen", found.best.front().counts);
      if (keeps_limits(plan.chosen)) break;
      if (attempt + 1 == kTries) return too_risky(plan);
      tighten(limits, plan.chosen);
    }
    plan.exact = found.exact;
    plan.gap = found.gap();
    add_others(limits, plan);
    add_front(plan);
    for (Option& other : plan.others) other.verdict = verdict_on(job_, other, plan.chosen);
    return plan;
  }

  /// The cheapest plans within time limits from the time of the cheapest down to that of the fastest.
  Result<Recommendation> front() const {
    const Limits limits = limits_of(job_);
    const SearchResult cheapest = best_by(Measure::usd, limits, market_.space, kQuick);
    if (cheapest.best.empty()) return infeasible();
    const SearchResult fastest = best_by(Measure::hours, limits, market_.space, kQuick);
    const double slow_h = hours_of(cheapest);
    const double fast_h = hours_of(fastest);
    Recommendation plan{.exact = true, .gap = std::max(cheapest.gap(), fastest.gap())};
    for (int point = 0; point < kFrontPoints; ++point) {
      Limits within = limits;
      within.hours =
          slow_h * std::pow(fast_h / slow_h, static_cast<double>(point) / (kFrontPoints - 1)) * (1 + 1e-9);
      const SearchResult found = best_by(Measure::usd, within, market_.space, kQuick);
      plan.exact = plan.exact && found.exact;
      plan.gap = std::max(plan.gap, found.gap());
      if (!found.best.empty()) plan.front.push_back(option_of("front", found.best.front().counts));
    }
    return choose_from(limits, std::move(plan));
  }

  double hours_of(const SearchResult& found) const {
    return expected_of(job_, found.best.front().score, job_.budget_usd_per_h, start_h_).hours;
  }

  Result<Recommendation> choose_from(const Limits& limits, Recommendation plan) const {
    std::vector<Option> kept;
    for (Option& one : plan.front) {
      plan.chosen = one;
      const bool new_one =
          kept.empty() || (one.hours < kept.back().hours && one.counts != kept.back().counts);
      if (new_one && keeps_limits(one)) kept.push_back(std::move(one));
    }
    if (kept.empty()) return too_risky(plan);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i].name = fmt::format("front {}", i + 1);
    if (job_.front_point > static_cast<int>(kept.size()))
      return Error{fmt::format("point {}: the front has {} points; expected one of them", job_.front_point,
                               kept.size())};
    const std::size_t chosen =
        job_.front_point > 0 ? static_cast<std::size_t>(job_.front_point - 1) : knee_of(kept);
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

  PlannedRun planned(const std::vector<int>& counts) const {
    const Space& space = market_.space;
    PlannedRun run{.samples = job_.samples,
                   .samples_per_round = space.samples_per_round,
                   .usd_per_sample = space.usd_per_sample + dearer_reads_usd(space, counts)};
    std::vector<int> peers(space.sites);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const Candidate& one = market_.candidates[i];
      peers[space.choices[i].site] += counts[i];
      for (int n = 0; n < counts[i]; ++n)
        run.machines.push_back({.samples_per_s = one.samples_per_s,
                                .factor = one.speed_factor,
                                .kind = kind_of(one.offer.gpu),
                                .usd_per_h = one.usd_per_h,
                                .lifetimes = one.lifetimes,
                                .wait_s = one.start_s - one.join_s,
                                .join_s = one.join_s,
                                .notice = one.offer.notice_s >= kNotice_s,
                                .spot = one.offer.purchase == market::Purchase::spot,
                                .domain = space.choices[i].domain});
    }
    if (run.machines.size() > 1) run.round = space.averaging(peers);
    run.round_factor = kAveragingFactor;
    run.shocks = job_.shocks;
    return run;
  }

  /// The index of the first candidate with this GPU.
  int kind_of(const std::string& gpu) const {
    const auto same = [&](const Candidate& one) { return one.offer.gpu == gpu; };
    const auto first = std::find_if(market_.candidates.begin(), market_.candidates.end(), same);
    return static_cast<int>(first - market_.candidates.begin());
  }

  bool keeps_limits(const Option& option) const {
    return (job_.deadline_h == 0 || option.risky_hours <= job_.deadline_h) &&
           (job_.budget_usd == 0 || option.risky_usd <= job_.budget_usd);
  }

  void tighten(Limits& limits, const Option& option) const {
    if (limits.hours > 0 && option.risky_hours > job_.deadline_h)
      limits.hours = std::min(limits.hours, option.hours) * job_.deadline_h / option.risky_hours;
    if (limits.usd > 0 && option.risky_usd > job_.budget_usd)
      limits.usd = std::min(limits.usd, option.usd) * job_.budget_usd / option.risky_usd;
  }

  Error too_risky(const Recommendation& plan) const {
    return Error{
        fmt::format("risk {:g}: in more scenarios the best plan ({}) misses a limit; with deadline_h {:.3g} "
                    "and budget_usd "
                    "{:.4g} it would not, or give more risk",
                    job_.risk, to_string(plan.chosen.peers), plan.chosen.risky_hours, plan.chosen.risky_usd)};
  }

  /// Lifts each limit alone, as far as needed.
  Error infeasible() const {
    std::vector<std::string> ways;
    const auto lift = [&](Measure measure, double Limits::*limit, const char* name) {
      Limits limits = limits_of(job_);
      if (limits.*limit == 0) return;
      const double asked = limits.*limit;
      limits.*limit = 0;
      const SearchResult found =
          search(market_.space, objective_of(job_, measure, limits, start_h_), kQuick, told_);
      if (found.best.empty()) return;
      ways.push_back(fmt::format("{} {:g}: {:.4g} or more could be met, with {}", name, asked,
                                 found.best.front().value * 1.0005,
                                 to_string(groups_of(market_, found.best.front().counts))));
    };
    lift(Measure::hours, &Limits::hours, "deadline_h");
    lift(Measure::usd, &Limits::usd, "budget_usd");
    lift(Measure::usd_per_h, &Limits::usd_per_h, "budget_usd_per_h");
    if (job_.domains_min > 1) lift_domains(ways);
    lift_quotas(ways);
    lift_peers(ways);
    if (!ways.empty()) return Error{fmt::format("no plan meets all limits. {}", fmt::join(ways, "; "))};
    lift_together(ways);
    return Error{fmt::format(
        "no plan meets all limits, and lifting one of them does not help.{}{}",
        ways.empty() ? " Lift domains_min, peers_max or quotas together" : " Without the others: ",
        fmt::join(ways, "; "))};
  }

  /// Keeps each limit alone, without the other two.
  void lift_together(std::vector<std::string>& ways) const {
    const auto alone = [&](Measure measure, double limit, const char* name) {
      if (limit == 0) return;
      const SearchResult found =
          search(market_.space, objective_of(job_, measure, {}, start_h_), kQuick, told_);
      if (!found.best.empty())
        ways.push_back(fmt::format("{} {:g}: {:.4g} or more could be met", name, limit,
                                   found.best.front().value * 1.0005));
    };
    alone(Measure::hours, job_.deadline_h, "deadline_h");
    alone(Measure::usd, job_.budget_usd, "budget_usd");
    alone(Measure::usd_per_h, job_.budget_usd_per_h, "budget_usd_per_h");
  }

  std::optional<Selection> within_limits(const Space& space) const {
    const SearchResult found =
        search(space, objective_of(job_, measure_of(job_), limits_of(job_), start_h_), kQuick, told_);
    return found.best.empty() ? std::nullopt : std::optional(found.best.front());
  }

  void lift_quotas(std::vector<std::string>& ways) const {
    int quota = 0;
    for (const auto& [name, most] : job_.quotas) {
      Space space = market_.space;
      space.quotas[static_cast<std::size_t>(quota)] = space.most_peers;
      if (const auto best = within_limits(space)) {
        int used = 0;
        for (std::size_t i = 0; i < best->counts.size(); ++i)
          if (std::ranges::count(space.choices[i].quotas, quota) > 0) used += best->counts[i];
        ways.push_back(fmt::format("quotas {} {:g}: {} could be met, with {}", name, most, used,
                                   to_string(groups_of(market_, best->counts))));
      }
      ++quota;
    }
  }

  void lift_peers(std::vector<std::string>& ways) const {
    for (int most = 2 * job_.peers_max; most <= kMostPeers; most *= 2) {
      Space space = market_.space;
      for (Choice& choice : space.choices)
        if (choice.most == space.most_peers) choice.most = most;
      space.most_peers = most;
      const auto best = within_limits(space);
      if (!best) continue;
      ways.push_back(fmt::format("peers_max {}: {} could be met, with {}", job_.peers_max,
                                 std::accumulate(best->counts.begin(), best->counts.end(), 0),
                                 to_string(groups_of(market_, best->counts))));
      return;
    }
  }

  void lift_domains(std::vector<std::string>& ways) const {
    MarketSpace fewer = market_;
    while (--fewer.space.least_domains > 0) {
      const SearchResult found =
          search(fewer.space, objective_of(job_, measure_of(job_), limits_of(job_), start_h_), kQuick, told_);
      if (found.best.empty()) continue;
      ways.push_back(fmt::format("domains_min {}: {} could be met, with {}", job_.domains_min,
                                 fewer.space.least_domains,
                                 to_string(groups_of(market_, found.best.front().counts))));
      return;
    }
  }

  std::optional<Selection> best_of(const Limits& limits, const Space& space) const {
    const SearchResult found = best_by(measure_of(job_), limits, space, kQuick);
    return found.best.empty() ? std::nullopt : std::optional(found.best.front());
  }

  /// Without limits that cannot be met.
  void add_baseline(const std::string& name, const Limits& limits, const Space& space,
                    Recommendation& plan) const {
    auto best = best_of(limits, space);
    if (!best) best = best_of({}, space);
    if (best) plan.others.push_back(option_of(name, best->counts));
  }

  /// The best plan of another kind, or the one that misses the limits least.
  void add_kind(const std::string& name, const Limits& limits, const Space& space,
                Recommendation& plan) const {
    auto best = best_of(limits, space);
    if (!best) {
      const Measure missed = limits.hours > 0 ? Measure::hours : Measure::usd;
      const SearchResult nearest = best_by(missed, {}, space, kQuick);
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
    Space space = market_.space;
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
    Space fewer = market_.space;
    fewer.most_peers = count_of(plan.chosen.peers) / 2;
    if (fewer.most_peers > 0) add_kind("half as many", limits, fewer, plan);
    add_baselines(limits, plan);
  }

  void add_baselines(const Limits& limits, Recommendation& plan) const {
    Space space = market_.space;
    space.least_domains = 1;
    Space one_site = space;
    one_site.most_sites = 1;
    add_baseline("one site", limits, one_site, plan);
    for (std::size_t i = 0; i < space.choices.size(); ++i)
      if (market_.candidates[i].offer.purchase == market::Purchase::spot) space.choices[i].most = 0;
    add_baseline("on-demand only", limits, space, plan);
  }

  void add_front(Recommendation& plan) const {
    const SearchResult most = best_by(Measure::hours, {}, market_.space, kQuick);
    if (most.best.empty()) return;
    const double highest = most.best.front().score.usd_per_h();
    for (int point = 1; point <= kFrontPoints; ++point) {
      const Limits limits{.usd_per_h = highest * point / kFrontPoints};
      const SearchResult found = best_by(Measure::hours, limits, market_.space, kQuick);
      if (found.best.empty()) continue;
      const auto& counts = found.best.front().counts;
      if (!plan.front.empty() && plan.front.back().counts == counts) continue;
      plan.front.push_back(option_of("front", counts));
    }
  }

  const Job& job_;
  const MarketSpace& market_;
  SearchTold told_;
  double start_h_ = 0;  ///< before all machines work
};

constexpr double kCheckpointBytesPerParam = 12;  ///< parameter and two moments

/// Only the loss of all peers at once takes a run back to a checkpoint. Upper bound of its rate: that of a
/// single machine, the shortest-lived of the plan.
void add_checkpoints(const MarketSpace& market, double params_m, Recommendation& plan) {
  double life_h = kNotAllowed;
  double restart_s = 0;
  for (std::size_t i = 0; i < plan.chosen.counts.size(); ++i) {
    if (plan.chosen.counts[i] == 0) continue;
    life_h = std::min(life_h, market.candidates[i].lifetimes.expected_h());
    restart_s = std::max(restart_s, market.candidates[i].start_s);
  }
  plan.checkpoint_s = remote_checkpoint_s(kCheckpointBytesPerParam * params_m);
  if (std::isinf(life_h)) return;
  const CheckpointCost cost{plan.checkpoint_s, life_h * 3600, restart_s};
  plan.checkpoint_interval_s = best_interval_s(cost);
  plan.young_s = young_interval_s(cost);
  plan.daly_s = daly_interval_s(cost);
}

void add_assumptions(const MarketSpace& market, std::int64_t now_unix_s, Recommendation& plan) {
  std::set<std::string> uncharged;
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
  }
  for (const std::string& provider : uncharged) plan.assumptions.push_back(uncharged_text(provider));
  plan.assumptions.push_back(market.data);
  for (const std::string& left_out : market.left_out) plan.assumptions.push_back(left_out);
}

void complete(const Job& job, const MarketSpace& market, std::int64_t now_unix_s, Recommendation& plan) {
  add_checkpoints(market, market.params_m, plan);
  add_assumptions(market, now_unix_s, plan);
  plan.alternatives = alternatives_of(job, market, plan.chosen.counts);
}

}  // namespace

Option evaluate(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                const std::string& name) {
  return Recommender(job, market).option_of(name, counts);
}

namespace {

/// "19.67 $ less", "102 h longer".
std::string difference_text(double difference, int digits, const char* unit, const char* more,
                            const char* less) {
  return fmt::format("{} {} {}", significant(std::abs(difference), digits), unit,
                     difference < 0 ? less : more);
}

}  // namespace

std::string losses_text(double losses) {
  constexpr double kRare = 0.5;
  if (losses == 0) return "no machine is taken";
  if (losses < kRare) return fmt::format("1 run in {:.0f} loses a machine", 1 / losses);
  return fmt::format("{} machines are taken in the mean", significant(losses, 2));
}

std::string verdict_on(const Job& job, const Option& other, const Option& chosen) {
  if (other.counts == chosen.counts) return "is the chosen one";
  if (job.deadline_h > 0 && other.hours > job.deadline_h)
    return fmt::format("misses the deadline by {} h", significant(other.hours - job.deadline_h, 3));
  if (job.budget_usd > 0 && other.usd > job.budget_usd)
    return fmt::format("exceeds the budget by {} $", significant(other.usd - job.budget_usd, 4));
  if (job.budget_usd_per_h > 0 && other.usd_per_h > job.budget_usd_per_h * (1 + 1e-9))
    return fmt::format("exceeds the budget per hour by {} $",
                       significant(other.usd_per_h - job.budget_usd_per_h, 3));
  return fmt::format("{}, {}", difference_text(other.usd - chosen.usd, 4, "$", "more", "less"),
                     difference_text(other.hours - chosen.hours, 3, "h", "longer", "shorter"));
}

Recommendation described(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                         const std::string& name, std::int64_t now_unix_s) {
  Recommendation plan{.chosen = evaluate(job, market, counts, name)};
  complete(job, market, now_unix_s, plan);
  return plan;
}

double least_of_goal(const Job& job, const MarketSpace& market) {
  return Recommender(job, market).least_of_goal();
}

Result<Recommendation> recommend(const Job& job, const MarketSpace& market, std::int64_t now_unix_s,
                                 const SearchTold& told) {
  auto plan = Recommender(job, market, told).run();
  if (!plan) return plan.error();
  complete(job, market, now_unix_s, plan.value());
  return plan;
}

}  // namespace tw::plan
