// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/remedies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "plan/search/market_limits.h"

namespace tw::plan {
namespace {

constexpr int kMostPeersOfJob = 256;  ///< of a job (plan/input/job_yaml.cc)
constexpr double kMostRisk = 0.5;     ///< likewise
constexpr double kRiskSteps = 1000;   ///< of its printed values

/// With four digits, not less than the value: with this limit it is kept.
std::string limit_text(double value) {
  if (!(value > 0)) return "0";
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
  for (double times = std::ceil(value / unit);; ++times) {
    std::string text = fmt::format("{:.6g}", times * unit);
    if (std::stod(text) >= value) return text;
  }
}

class Remedies {
 public:
  explicit Remedies(const LimitedSearch& search)
      : search_(search), job_(search.job()), space_(search.space()), limits_(limits_of(search.job())) {}

  Error no_plan() {
    lift_risk();
    lift_hours();
    lift_usd();
    lift_usd_per_h();
    if (job_.domains_min > 1) lift_domains();
    lift_quotas();
    lift_peers();
    const std::string risk =
        is_too_risky_ ? fmt::format(" in {:g} % of the scenarios", 100 * (1 - job_.risk)) : "";
    if (!ways_.empty())
      return Error{fmt::format("no plan meets all limits{}. {}", risk, fmt::join(ways_, "; "))};
    lift_together();
    return Error{fmt::format(
        "no plan meets all limits{}, and lifting one of them does not help.{}{}", risk,
        ways_.empty() ? " Lift domains_min, peers_max or quotas together" : " Without the others: ",
        fmt::join(ways_, "; "))};
  }

 private:
  using Found = std::optional<Selection>;

  Found least(Measure measure, const Limits& limits, const Space& space) const {
    const SearchResult found = search_.least(measure, limits, space, kQuick);
    return found.best.empty() ? std::nullopt : Found(found.best.front());
  }

  Found within_limits(const Space& space) const { return least(measure_of(job_), limits_, space); }

  std::string peers_text(const Selection& plan) const {
    return to_string(groups_of(search_.market(), plan.counts));
  }

  void add(const std::string& limit, const std::string& value, const Selection& plan) {
    ways_.push_back(fmt::format("{}: {} or more could be met, with {}", limit, value, peers_text(plan)));
  }

  /// More of the scenarios may miss a limit that holds on average.
  void lift_risk() {
    Limits average = limits_;
    average.risky_hours = average.risky_usd = 0;
    const Found plan = least(measure_of(job_), average, space_);
    if (!plan) return;
    is_too_risky_ = true;
    const Outcomes outcomes = search_.outcomes_of(plan->counts);
    const auto missed = [](const std::vector<double>& values, double limit) {
      if (limit == 0) return 0.0;
      const auto misses = std::ranges::count_if(values, [&](double value) { return value > limit; });
      return static_cast<double>(misses) / static_cast<double>(values.size() - 1);
    };
    Job more = job_;
    more.risk = std::max(missed(outcomes.hours, job_.deadline_h), missed(outcomes.usd, job_.budget_usd));
    more.risk = std::ceil(more.risk * kRiskSteps) / kRiskSteps;
    if (more.risk > kMostRisk) return;
    const LimitedSearch::Needs needs = LimitedSearch(more, search_.market()).needs_of(plan->counts);
    if ((job_.deadline_h == 0 || needs.hours <= job_.deadline_h) &&
        (job_.budget_usd == 0 || needs.usd <= job_.budget_usd))
      add(fmt::format("risk {:g}", job_.risk), fmt::format("{:g}", more.risk), *plan);
  }

  void lift_hours() {
    if (job_.deadline_h == 0) return;
    Limits limits = limits_;
    limits.hours = limits.risky_hours = 0;
    if (const Found plan = least(Measure::safe_hours, limits, space_))
      add(fmt::format("deadline_h {:g}", job_.deadline_h), limit_text(search_.needs_of(plan->counts).hours),
          *plan);
  }

  void lift_usd() {
    if (job_.budget_usd == 0) return;
    Limits limits = limits_;
    limits.usd = limits.risky_usd = 0;
    if (const Found plan = least(Measure::safe_usd, limits, space_))
      add(fmt::format("budget_usd {:g}", job_.budget_usd), limit_text(search_.needs_of(plan->counts).usd),
          *plan);
  }

  void lift_usd_per_h() {
    if (job_.budget_usd_per_h == 0) return;
    Limits limits = limits_;
    limits.usd_per_h = 0;
    if (const Found plan = least(Measure::usd_per_h, limits, space_))
      add(fmt::format("budget_usd_per_h {:g}", job_.budget_usd_per_h), limit_text(plan->score.usd_per_h()),
          *plan);
  }

  void lift_quotas() {
    int quota = 0;
    for (const auto& [name, most] : job_.quotas) {
      Space space = space_;
      space.quotas[static_cast<std::size_t>(quota)] = space.most_peers;
      if (const Found plan = within_limits(space)) {
        int used = 0;
        for (std::size_t i = 0; i < plan->counts.size(); ++i)
          if (std::ranges::count(space.choices[i].quotas, quota) > 0) used += plan->counts[i];
        ways_.push_back(
            fmt::format("quotas {} {:g}: {} could be met, with {}", name, most, used, peers_text(*plan)));
      }
      ++quota;
    }
  }

  /// False for own hosts, of which there are no more, and for choices that a plan under way holds back.
  bool is_bounded_by_peers(std::size_t choice) const {
    return space_.choices[choice].most == most_of_offer(space_.most_peers) &&
           !is_own_host(job_, search_.market().candidates[choice].offer);
  }

  int most_of_offer(int peers) const { return job_.offer_max > 0 ? std::min(job_.offer_max, peers) : peers; }

  void lift_peers() {
    for (int most = 2 * job_.peers_max; most <= kMostPeersOfJob; most *= 2) {
      Space space = space_;
      for (std::size_t i = 0; i < space.choices.size(); ++i)
        if (is_bounded_by_peers(i)) space.choices[i].most = most_of_offer(most);
      space.most_peers = most;
      const Found plan = within_limits(space);
      if (!plan) continue;
      ways_.push_back(fmt::format("peers_max {}: {} could be met, with {}", job_.peers_max,
                                  std::accumulate(plan->counts.begin(), plan->counts.end(), 0),
                                  peers_text(*plan)));
      return;
    }
  }

  void lift_domains() {
    Space fewer = space_;
    while (--fewer.least_domains > 0) {
      const Found plan = within_limits(fewer);
      if (!plan) continue;
      ways_.push_back(fmt::format("domains_min {}: {} could be met, with {}", job_.domains_min,
                                  fewer.least_domains, peers_text(*plan)));
      return;
    }
  }

  /// Keeps each limit alone, without the other two.
  void lift_together() {
    const auto alone = [&](Measure measure, const std::string& limit, auto need) {
      if (const Found plan = least(measure, {}, space_))
        ways_.push_back(fmt::format("{}: {} or more could be met", limit, limit_text(need(*plan))));
    };
    if (job_.deadline_h > 0)
      alone(Measure::safe_hours, fmt::format("deadline_h {:g}", job_.deadline_h),
            [&](const Selection& plan) { return search_.needs_of(plan.counts).hours; });
    if (job_.budget_usd > 0)
      alone(Measure::safe_usd, fmt::format("budget_usd {:g}", job_.budget_usd),
            [&](const Selection& plan) { return search_.needs_of(plan.counts).usd; });
    if (job_.budget_usd_per_h > 0)
      alone(Measure::usd_per_h, fmt::format("budget_usd_per_h {:g}", job_.budget_usd_per_h),
            [](const Selection& plan) { return plan.score.usd_per_h(); });
  }

  const LimitedSearch& search_;
  const Job& job_;
  const Space& space_;
  Limits limits_;
  bool is_too_risky_ = false;
  std::vector<std::string> ways_;
};

}  // namespace

Error no_plan(const LimitedSearch& search) { return Remedies(search).no_plan(); }

}  // namespace tw::plan
