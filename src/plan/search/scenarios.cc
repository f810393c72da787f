// SPDX-License-Identifier: Apache-2.0
#include "plan/search/scenarios.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/median.h"

namespace tw::plan {
namespace {

constexpr std::uint64_t kSeed = 0x7477;
constexpr std::uint64_t kErrorSeed = 0x6572;
constexpr std::uint64_t kShockSeed = 0x7368;
constexpr double kNoEnd_s = 3.2e9;  // a century: nobody waits that long

/// The standard normal distribution (Box and Muller 1958).
double normal(Prng random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * random.uniform());
}

double luck_of(std::uint64_t scenario) { return normal(Prng(mix(kErrorSeed, scenario))); }

/// A machine begins to work or is taken, or a shock hits a failure domain.
struct Event {
  enum class Kind { works, taken, shock };

  double at_s = 0;
  std::size_t machine = 0;  ///< for a shock: the index of its domain
  Kind kind = Kind::works;
  double paid_from_s = 0;
  int life = 0;  ///< of the machine; events planned for an earlier life are void

  bool operator>(const Event& other) const { return at_s > other.at_s; }
};

class Scenario {
 public:
  Scenario(const PlannedRun& run, std::uint64_t number)
      : run_(run), averaging_s_(run.round.seconds * error_of(run.round_factor, -luck_of(number))) {
    for (std::size_t m = 0; m < run.machines.size(); ++m) {
      const PlannedMachine& machine = run.machines[m];
      speeds_.push_back(machine.samples_per_s * error_of(machine.factor, luck_of(number)));
      luck_.emplace_back(mix(mix(kSeed, number), m));
      paid_from_s_.push_back(-1);
      lives_.push_back(0);
      request(m, 0);
      const bool known = std::find(domains_.begin(), domains_.end(), machine.domain) != domains_.end();
      if (machine.spot && !known) domains_.push_back(machine.domain);
    }
    for (std::size_t at = 0; at < domains_.size() && run.shocks.per_day > 0; ++at) {
      shock_luck_.emplace_back(mix(mix(kShockSeed, number), static_cast<std::uint64_t>(domains_[at])));
      await_shock(at);
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
      work_until(event.at_s);
      take(event);
    }
    for (std::size_t m = 0; m < paid_from_s_.size(); ++m) pay(m);
  }

  double hours() const { return now_s_ / 3600; }

  double usd() const { return usd_ + (run_.samples + again_) * run_.usd_per_sample + traffic_usd(); }

  int losses() const { return losses_; }

 private:
  void work_until(double at_s) {
    const double pace = samples_per_s();
    done_ += pace * (at_s - now_s_);
    if (live_ > 0) worked_s_ += working_share() * (at_s - now_s_);
    now_s_ = at_s;
    const double interval_s = run_.checkpoint_interval_s;
    if (interval_s <= 0 || worked_s_ < interval_s) return;
    worked_s_ = std::fmod(worked_s_, interval_s);
    saved_ = done_ - pace / working_share() * worked_s_;
  }

  void take(const Event& event) {
    if (event.kind == Event::Kind::shock) return strike(event.machine);
    if (event.life != lives_[event.machine]) return;
    event.kind == Event::Kind::works ? begin(event) : lose(event.machine);
  }

  void await_shock(std::size_t at) {
    const double wait_s = -std::log(1 - shock_luck_[at].uniform()) * 86400 / run_.shocks.per_day;
    events_.push({now_s_ + wait_s, at, Event::Kind::shock, 0, 0});
  }

  /// Takes running spot machines of the domain, each at random.
  void strike(std::size_t at) {
    for (std::size_t m = 0; m < run_.machines.size(); ++m) {
      const PlannedMachine& machine = run_.machines[m];
      if (!machine.spot || machine.domain != domains_[at] || paid_from_s_[m] < 0) continue;
      if (shock_luck_[at].chance(run_.shocks.share)) lose(m);
    }
    await_shock(at);
  }

  void request(std::size_t m, double at_s) {
    const PlannedMachine& machine = run_.machines[m];
    const double runs_s = at_s + machine.wait_s;
    events_.push({runs_s + machine.join_s, m, Event::Kind::works, runs_s, lives_[m]});
  }

  void begin(const Event& event) {
    const PlannedMachine& machine = run_.machines[event.machine];
    paid_from_s_[event.machine] = event.paid_from_s;
    speed_ += speeds_[event.machine];
    ++live_;
    const double lives_s = to_seconds(machine.lifetimes.draw(luck_[event.machine]));
    events_.push({std::max(now_s_, event.paid_from_s + lives_s), event.machine, Event::Kind::taken, 0,
                  lives_[event.machine]});
  }

  void lose(std::size_t m) {
    const PlannedMachine& machine = run_.machines[m];
    const bool goes_back = live_ == 1 && run_.checkpoint_interval_s > 0;
    if (goes_back)
      begin_again(machine.saves);
    else if (!machine.notice)
      do_again(speeds_[m] * round_s() / 2);  // on average, half of its work for a round
    pay(m);
    speed_ = std::max(0.0, speed_ - speeds_[m]);
    --live_;
    ++losses_;
    ++lives_[m];
    request(m, now_s_);
  }

  /// No peer has the state any more.
  void begin_again(bool saves) {
    if (!saves) do_again(done_ - saved_);
    saved_ = done_;
    worked_s_ = 0;
  }

  void do_again(double samples) {
    done_ -= samples;
    again_ += samples;
    saved_ = std::min(saved_, done_);
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

  /// The rest of the time checkpoints are written.
  double working_share() const {
    const double interval_s = run_.checkpoint_interval_s;
    return interval_s > 0 ? interval_s / (interval_s + run_.checkpoint_s) : 1;
  }

  double samples_per_s() const {
    return live_ == 0 ? 0 : working_share() * run_.samples_per_round / round_s();
  }

  double traffic_usd() const { return (run_.samples + again_) / run_.samples_per_round * run_.round.usd; }

  const PlannedRun& run_;
  double averaging_s_;
  std::vector<double> speeds_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Prng> luck_;
  std::vector<double> paid_from_s_;
  std::vector<int> lives_;
  std::vector<int> domains_;  ///< with spot machines
  std::vector<Prng> shock_luck_;
  double now_s_ = 0;
  double done_ = 0;
  double again_ = 0;     ///< samples that were lost and trained again
  double saved_ = 0;     ///< samples in the last checkpoint
  double worked_s_ = 0;  ///< since then
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

double worst_luck(double risk, int scenarios) {
  std::vector<double> luck;
  for (int number = 0; number < scenarios; ++number)
    luck.push_back(luck_of(static_cast<std::uint64_t>(number)));
  return quantile(luck, risk);
}

double error_of(double factor, double luck) {
  constexpr double kNinthDecile = 1.2815515655446004;
  return std::exp(std::log(factor) / kNinthDecile * luck);
}

Spread spread_of(const std::vector<double>& values) {
  return {quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9)};
}

}  // namespace tw::plan
