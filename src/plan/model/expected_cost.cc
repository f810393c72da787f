// SPDX-License-Identifier: Apache-2.0
#include "plan/model/expected_cost.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tw::plan {
namespace {

/// Size of the grid; a longer job has longer steps than change-overs, and each decision stays below 10 ms.
constexpr double kMostSteps = 360;
constexpr double kMostSlack = 120;
/// Share of the on-demand price that an hour without work costs. Two ways that cost the same differ in when
/// the job is done, and time that was waited is missing when the market turns out worse than learned.
constexpr double kWaiting = 0.01;
constexpr double kShortestStep_h = 1.0 / 12;

double step_for(const ExpectedCost::Span& span) {
  return std::max({kShortestStep_h, span.change_over_h, span.time_h / kMostSteps,
                   (span.time_h - span.work_h) / kMostSlack});
}

}  // namespace

ExpectedCost::ExpectedCost(const SpotOutlook& outlook, const Span& span)
    : outlook_(outlook),
      step_h_(step_for(span)),
      start_(static_cast<float>(std::min(1.0, span.change_over_h / step_h_))),
      slack_(std::max(1, static_cast<int>(std::ceil((span.time_h - span.work_h) / step_h_)))),
      steps_(std::max(1, static_cast<int>(std::ceil(span.work_h / step_h_))) + slack_),
      usd_(static_cast<std::size_t>(steps_ + 1) * kStates * static_cast<std::size_t>(slack_ + 1), 0) {
  find_turns();
  for (int steps = 1; steps <= steps_; ++steps) fill(steps);
}

float* ExpectedCost::row(int steps, int state) {
  return &usd_[(static_cast<std::size_t>(steps) * kStates + static_cast<std::size_t>(state)) *
               static_cast<std::size_t>(slack_ + 1)];
}

const float* ExpectedCost::row(int steps, int state) const {
  return const_cast<ExpectedCost*>(this)->row(steps, state);
}

void ExpectedCost::find_turns() {
  for (const bool up : {true, false}) {
    for (int age = 0; age < kSpotAges; ++age) {
      const auto bin = static_cast<std::size_t>(age);
      const double ends = 1 - std::exp(-outlook_.hazards.of(up)[bin] * step_h_);
      const double older =
          age + 1 < kSpotAges ? std::min(1.0, step_h_ / (kSpotAge_h[bin + 1] - kSpotAge_h[bin])) : 0;
      double elsewhere = 0;
      for (const double part : outlook_.elsewhere) elsewhere += up ? part : 0;
      std::vector<Next>& turns = turns_[static_cast<std::size_t>(market_of(up, age))];
      const auto add = [&](bool next_up, int next_age, double probability) {
        if (probability > 0)
          turns.push_back({market_of(next_up, next_age), static_cast<float>(probability), false});
      };
      add(up, age, (1 - ends) * (1 - older));
      if (age + 1 < kSpotAges) add(up, age + 1, (1 - ends) * older);
      add(!up, 0, ends * (1 - elsewhere));
      for (int other = 0; up && other < kSpotAges; ++other) {
        const double part = ends * outlook_.elsewhere[static_cast<std::size_t>(other)];
        if (part > 0) turns.push_back({market_of(true, other), static_cast<float>(part), true});
      }
    }
  }
}

/// Costs after a step, over what the market may be then.
void ExpectedCost::expect(int steps, Mode mode, int market, std::vector<float>& costs) const {
  std::fill(costs.begin(), costs.end(), 0.0F);
  for (const Next& next : turns_[static_cast<std::size_t>(market)]) {
    const float* from = row(steps, state(next.market, after(next, mode)));
    for (std::size_t k = 0; k < costs.size(); ++k) costs[k] += next.probability * from[k];
  }
}

void ExpectedCost::fill(int steps) {
  const auto width = static_cast<std::size_t>(slack_ + 1);
  const auto never = static_cast<float>(2 * kImpossible * outlook_.on_demand_usd_h);
  const auto spot_usd = static_cast<float>(outlook_.spot_usd_h * step_h_);
  const auto waiting_usd = static_cast<float>(kWaiting * outlook_.on_demand_usd_h * step_h_);
  const auto on_demand_usd = static_cast<float>(outlook_.on_demand_usd_h * step_h_);
  std::array<std::vector<float>, 3> then;
  for (std::vector<float>& costs : then) costs.resize(width);
  for (int market = 0; market < kMarkets; ++market) {
    const bool up = market < kSpotAges;
    for (const Mode mode : {Mode::idle, Mode::spot, Mode::on_demand})
      if (up || mode != Mode::spot) expect(steps - 1, mode, market, then[static_cast<std::size_t>(mode)]);
    const auto& [idle, spot, on_demand] = then;
    for (const Mode now : {Mode::idle, Mode::spot, Mode::on_demand}) {
      if (now == Mode::spot && !up) continue;
      float* usd = row(steps, state(market, now));
      for (std::size_t k = 0; k < width; ++k) {
        // No work: the same slack less one, where a step of work leaves the slack as it is.
        const float by_waiting = k > 0 ? waiting_usd + idle[k - 1] : never;
        const auto starting = [&](const std::vector<float>& costs) {
          return start_ * (k > 0 ? costs[k - 1] : never) + (1 - start_) * costs[k];
        };
        const float by_spot = up ? spot_usd + (now == Mode::spot ? spot[k] : starting(spot)) : never;
        const float by_on_demand =
            on_demand_usd + (now == Mode::on_demand ? on_demand[k] : starting(on_demand));
        usd[k] = std::min({by_waiting, by_spot, by_on_demand, never});
      }
      // The work is done where the slack is all that is left.
      for (std::size_t k = static_cast<std::size_t>(steps); k < width; ++k) usd[k] = 0;
    }
  }
}

double ExpectedCost::at(double work, double slack, int state) const {
  const double w = std::clamp(work, 0.0, static_cast<double>(steps_ - slack_));
  const double k = std::clamp(slack, 0.0, static_cast<double>(slack_));
  const int w0 = std::clamp(static_cast<int>(w), 0, std::max(0, steps_ - slack_ - 1));
  const int k0 = std::min(static_cast<int>(k), slack_ - 1);
  const auto cost = [&](int more_work, int more_slack) {
    const int steps = w0 + more_work + k0 + more_slack;
    return static_cast<double>(row(steps, state)[k0 + more_slack]);
  };
  const double part_w = w - w0;
  const double part_k = k - k0;
  return (1 - part_w) * ((1 - part_k) * cost(0, 0) + part_k * cost(0, 1)) +
         part_w * ((1 - part_k) * cost(1, 0) + part_k * cost(1, 1));
}

double ExpectedCost::expected(double work, double slack, Mode mode, int market) const {
  if (slack < 0) return 2 * kImpossible * outlook_.on_demand_usd_h;
  double usd = 0;
  for (const Next& next : turns_[static_cast<std::size_t>(market)])
    usd += static_cast<double>(next.probability) * at(work, slack, state(next.market, after(next, mode)));
  return usd;
}

std::array<double, 3> ExpectedCost::usd(double time_left_h, double work_left_h, SpotSight market,
                                        Mode now) const {
  TW_CHECK(now != Mode::spot || market.up);
  const int here = market_of(market.up, spot_age_bin(market.age_h));
  const double work = work_left_h / step_h_;
  const double slack = (time_left_h - work_left_h) / step_h_;
  const auto with = [&](Mode mode, double usd_h) {
    const double lost = now == mode ? 0 : static_cast<double>(start_);
    const double paid_h = std::min(step_h_, work_left_h + lost * step_h_);
    return usd_h * paid_h + expected(work - 1 + lost, slack - lost, mode, here);
  };
  return {kWaiting * outlook_.on_demand_usd_h * step_h_ + expected(work, slack - 1, Mode::idle, here),
          market.up ? with(Mode::spot, outlook_.spot_usd_h) : 2 * kImpossible * outlook_.on_demand_usd_h,
          with(Mode::on_demand, outlook_.on_demand_usd_h)};
}

}  // namespace tw::plan
