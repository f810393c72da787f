// SPDX-License-Identifier: Apache-2.0
#include "plan/model/spot_chain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text/number.h"

namespace tw::plan {
namespace {

/// The prior counts as one spell of each. On the published traces, half or twice the values change mean cost
/// by 1 %.
constexpr double kGuessedUp_h = 3;
constexpr double kGuessedDown_h = 2;

/// Probabilities of changes in the next step.
struct Turn {
  double lost = 0;
  double found = 0;
};

Turn turn_of(const ExpectedCost::Inputs& inputs) {
  const double total = inputs.lost_per_h + inputs.found_per_h;
  const double mixed = 1 - std::exp(-total * inputs.step_h);
  return {inputs.lost_per_h / total * mixed, inputs.found_per_h / total * mixed};
}

}  // namespace

SpotChain::SpotChain(int machines, double tick_s)
    : machines_(machines), tick_h_(tick_s / 3600), up_h_(kGuessedUp_h), down_h_(kGuessedDown_h) {}

void SpotChain::see(int available) {
  const double up = static_cast<double>(available) / machines_;
  up_h_ += tick_h_ * up;
  down_h_ += tick_h_ * (1 - up);
  if (last_ >= 0) {
    lost_ += static_cast<double>(std::max(0, last_ - available)) / machines_;
    found_ += static_cast<double>(std::max(0, available - last_)) / machines_;
  }
  last_ = available;
}

double SpotChain::lost_per_h() const { return (lost_ + 1) / up_h_; }

double SpotChain::found_per_h() const { return (found_ + 1) / down_h_; }

ExpectedCost::ExpectedCost(const Inputs& inputs)
    : steps_(inputs.steps),
      work_(inputs.work),
      cost_(static_cast<std::size_t>(work_ + 1) * kStates, kInfinity),
      choices_(static_cast<std::size_t>(steps_ + 1) * static_cast<std::size_t>(work_ + 1) * kStates,
               Mode::on_demand) {
  std::fill_n(cost_.begin(), kStates, 0);
  for (int left = 1; left <= steps_; ++left) fill(left, inputs);
}

std::size_t ExpectedCost::place(int steps_left, int work_left) const {
  return (static_cast<std::size_t>(steps_left) * static_cast<std::size_t>(work_ + 1) +
          static_cast<std::size_t>(work_left)) *
         kStates;
}

double ExpectedCost::expected(int work_left, double up, Mode mode) const {
  const double* costs = &after_[static_cast<std::size_t>(work_left) * kStates];
  const Mode without = mode == Mode::spot ? Mode::idle : mode;  // a machine that is taken becomes idle
  // Skips impossible cases, whose cost may be infinite.
  return (up > 0 ? up * costs[state(true, mode)] : 0) +
         (up < 1 ? (1 - up) * costs[state(false, without)] : 0);
}

void ExpectedCost::fill(int steps_left, const Inputs& inputs) {
  after_ = cost_;
  const Turn turn = turn_of(inputs);
  const double spot_usd = inputs.spot_usd_h * inputs.step_h;
  const double on_demand_usd = inputs.on_demand_usd_h * inputs.step_h;
  for (int work = 1; work <= work_; ++work) {
    for (bool up : {false, true}) {
      const double up_next = up ? 1 - turn.lost : turn.found;
      const auto after = [&](int left, Mode mode) { return expected(left, up_next, mode); };
      for (Mode now : {Mode::idle, Mode::spot, Mode::on_demand}) {
        // A machine that starts works from the next step on.
        const int by_spot = now == Mode::spot ? work - 1 : work;
        const int by_on_demand = now == Mode::on_demand ? work - 1 : work;
        const std::array<double, 3> costs{after(work, Mode::idle),
                                          up ? spot_usd + after(by_spot, Mode::spot) : kInfinity,
                                          on_demand_usd + after(by_on_demand, Mode::on_demand)};
        const auto* least = std::min_element(costs.begin(), costs.end());
        const auto at = static_cast<std::size_t>(state(up, now));
        cost_[static_cast<std::size_t>(work) * kStates + at] = *least;
        if (*least < kInfinity)
          choices_[place(steps_left, work) + at] = static_cast<Mode>(least - costs.begin());
      }
    }
  }
}

Mode ExpectedCost::choice(int steps_left, int work_left, bool up, Mode now) const {
  const std::size_t at = place(std::clamp(steps_left, 0, steps_), std::clamp(work_left, 0, work_));
  return choices_[at + static_cast<std::size_t>(state(up, now))];
}

}  // namespace tw::plan
