// SPDX-License-Identifier: Apache-2.0
#include "plan/scenarios.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace tw {
namespace {

constexpr std::uint64_t kSeed = 0x7477;
constexpr std::uint64_t kErrorSeed = 0x6572;
constexpr double kNoEnd_s = 3.2e9;  // a century: what nobody waits for

/// The standard normal distribution (Box and Muller 1958).
double normal(Prng random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * random.uniform());
}

/// Lies within 1 / factor and factor in 80 % of the draws.
double error_within(double factor, Prng random) {
  constexpr double kNinthDecile = 1.2815515655446004;
  return std::exp(std::log(factor) / kNinthDecile * normal(random));
}

/// A machine begins to work, or is taken.
struct Event {
  double at_s = 0;
  std::size_t machine = 0;
  bool works = false;
  double paid_from_s = 0;

  bool operator>(const Event& other) const { return at_s > other.at_s; }
};

class Scenario {
 public:
  Scenario(const PlannedRun& run, std::uint64_t number)
      : run_(run),
        averaging_s_(run.round.seconds * error_within(run.round_factor, Prng(mix(kErrorSeed, number)))) {
    for (std::size_t m = 0; m < run.machines.size(); ++m) {
      const PlannedMachine& machine = run.machines[m];
      const Prng of_kind(mix(mix(kErrorSeed, number), 1 + static_cast<std::uint64_t>(machine.kind)));
      speeds_.push_back(machine.samples_per_s * error_within(machine.factor, of_kind));
      luck_.emplace_back(mix(mix(kSeed, number), m));
      paid_from_s_.push_back(-1);
      request(m, 0);
    }
  }

  void play() {
    while (!events_.empty()) {
      const Event event = events_.top();
      const double done_by_s = now_s_ + left() / std::max(1e-12, samples_per_s());
      if (done_by_s <= event.at_s || event.at_s >= kNoEnd_s) {
        now_s_ = std::min(done_by_s, kNoEnd_s);
        break;
      }
      events_.pop();
      done_ += samples_per_s() * (event.at_s - now_s_);
      now_s_ = event.at_s;
      event.works ? begin(event) : lose(event);
    }
    for (std::size_t m = 0; m < paid_from_s_.size(); ++m) pay(m);
  }

  double hours() const { return now_s_ / 3600; }

  double usd() const { return usd_ + (run_.samples + again_) * run_.usd_per_sample + traffic_usd(); }

  int losses() const { return losses_; }

 private:
  void request(std::size_t m, double at_s) {
    const PlannedMachine& machine = run_.machines[m];
    const double runs_s = at_s + machine.wait_s;
    events_.push({runs_s + machine.join_s, m, true, runs_s});
  }

  void begin(const Event& event) {
    const PlannedMachine& machine = run_.machines[event.machine];
    paid_from_s_[event.machine] = event.paid_from_s;
    speed_ += speeds_[event.machine];
    ++live_;
    const double lives_s = to_seconds(machine.lifetimes.draw(luck_[event.machine]));
    events_.push({std::max(now_s_, event.paid_from_s + lives_s), event.machine, false, 0});
  }

  void lose(const Event& event) {
    const PlannedMachine& machine = run_.machines[event.machine];
    if (!machine.notice) {
      // Half of what it does for a round, on average.
      const double lost = speeds_[event.machine] * round_s() / 2;
      done_ -= lost;
      again_ += lost;
    }
    pay(event.machine);
    speed_ = std::max(0.0, speed_ - speeds_[event.machine]);
    --live_;
    ++losses_;
    request(event.machine, now_s_);
  }

  void pay(std::size_t m) {
    if (paid_from_s_[m] < 0) return;
    usd_ += std::max(0.0, now_s_ - paid_from_s_[m]) / 3600 * run_.machines[m].usd_per_h;
    paid_from_s_[m] = -1;
  }

  double left() const { return run_.samples - done_; }

  double round_s() const {
    const double calc_s = run_.samples_per_round / speed_;
    return live_ > 1 ? std::max(calc_s, run_.round.calc_s) + averaging_s_ : calc_s;
  }

  double samples_per_s() const { return live_ == 0 ? 0 : run_.samples_per_round / round_s(); }

  double traffic_usd() const { return (run_.samples + again_) / run_.samples_per_round * run_.round.usd; }

  const PlannedRun& run_;
  double averaging_s_;
  std::vector<double> speeds_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Prng> luck_;
  std::vector<double> paid_from_s_;
  double now_s_ = 0;
  double done_ = 0;
  double again_ = 0;  ///< samples that were lost and trained again
  double speed_ = 0;
  double usd_ = 0;
  int live_ = 0;
  int losses_ = 0;
};

}  // namespace

Outcomes play_scenarios(const PlannedRun& run, int scenarios) {
  Outcomes outcomes;
  for (int number = 0; number < scenarios; ++number) {
    Scenario scenario(run, static_cast<std::uint64_t>(number));
    scenario.play();
    outcomes.hours.push_back(scenario.hours());
    outcomes.usd.push_back(scenario.usd());
    outcomes.losses += static_cast<double>(scenario.losses()) / scenarios;
  }
  return outcomes;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

Spread spread_of(const std::vector<double>& values) {
  return {quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9)};
}

}  // namespace tw
