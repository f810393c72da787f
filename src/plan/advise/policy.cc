// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"
#include "plan/model/spot_chain.h"

namespace tw::plan {
namespace {

constexpr double kLongestTick_s = 300;
constexpr double kRounding = 1e-9;
constexpr double kRelearn_h = 4;

struct Machine {
  Mode mode = Mode::idle;
  int starting = 0;  ///< ticks until its first work
};

/// One replay; a step is one tick.
class Play {
 public:
  Play(const DeadlineJob& job, Policy policy)
      : job_(job),
        policy_(policy),
        ticks_(ticks_of(job)),
        seen_(job.machines, ticks_.tick_s),
        machines_(static_cast<std::size_t>(job.machines)) {}

  bool done() const { return work_done_ >= ticks_.work; }

  int now() const { return now_; }

  const Ticks& ticks() const { return ticks_; }

  void step(int available) {
    seen_.see(std::min(available, job_.machines));
    take_away(available);
    decide(available);
    work();
    ++now_;
  }

  Replay result() const {
    const double tick_h = ticks_.tick_s / 3600;
    Replay result{.finished_s = now_ * ticks_.tick_s,
                  .spot_h = spot_ticks_ * tick_h,
                  .on_demand_h = on_demand_ticks_ * tick_h,
                  .interruptions = interruptions_,
                  .late = !done() || now_ > ticks_.deadline};
    result.usd = result.spot_h * job_.spot_usd_h + result.on_demand_h * job_.on_demand_usd_h;
    return result;
  }

 private:
  int count(Mode mode) const {
    return static_cast<int>(std::count_if(machines_.begin(), machines_.end(),
                                          [&](const Machine& one) { return one.mode == mode; }));
  }

  void take_away(int available) {
    int excess = count(Mode::spot) - available;
    for (auto one = machines_.rbegin(); one != machines_.rend() && excess > 0; ++one) {
      if (one->mode != Mode::spot) continue;
      *one = {};
      ++interruptions_;
      --excess;
    }
  }

  void start(Machine& machine, Mode mode) const {
    machine = {mode, mode == Mode::idle ? 0 : ticks_.change_over};
  }

  void decide(int available) {
    if (policy_ == Policy::on_demand || net_) return all_on_demand();
    const std::vector<Machine> before = machines_;
    if (policy_ == Policy::forecast) {
      follow_forecast(available);
    } else {
      if (policy_ == Policy::uniform) follow_schedule(available);
      fill_with_spot(available);
    }
    if (can_still_turn_back()) return;
    machines_ = before;
    net_ = true;
    all_on_demand();
  }

  void all_on_demand() {
    for (Machine& one : machines_)
      if (one.mode != Mode::on_demand) start(one, Mode::on_demand);
  }

  /// On-demand machines in addition to spot ones while behind, until ahead by two change-overs.
  void follow_schedule(int available) {
    if (catching_up_ && work_done_ >= scheduled(now_ + 2 * ticks_.change_over)) catching_up_ = false;
    if (!catching_up_ && work_done_ < scheduled(now_)) catching_up_ = true;
    int spot = available - count(Mode::spot);
    for (Machine& one : machines_) {
      if (!catching_up_ && one.mode == Mode::on_demand) one = {};
      if (catching_up_ && one.mode == Mode::idle && spot-- <= 0) start(one, Mode::on_demand);
    }
  }

  /// Each machine does its part of the remaining work as if it were alone.
  void follow_forecast(int available) {
    const int step = std::max(1, ticks_.change_over);
    if (!expected_ || now_ >= learned_at_ + kRelearn_h * 3600 / ticks_.tick_s) learn(step);
    const int work_left = steps_of_work(step);
    const int steps_left = (ticks_.deadline - now_) / step;
    int spot = available - count(Mode::spot);
    for (Machine& one : machines_) {
      const bool up = one.mode == Mode::spot || spot > 0;
      const Mode chosen = expected_->choice(steps_left, work_left, up, one.mode);
      if (chosen == Mode::spot && one.mode != Mode::spot) --spot;
      const bool on_its_way = one.mode == Mode::on_demand && one.starting > 0;
      if (chosen != one.mode && !on_its_way) start(one, chosen);
    }
  }

  int steps_of_work(int step) const {
    return (ticks_.work - work_done_ + step * job_.machines - 1) / (step * job_.machines);
  }

  void learn(int step) {
    learned_at_ = now_;
    expected_.emplace(ExpectedCost::Inputs{.step_h = step * ticks_.tick_s / 3600,
                                           .steps = (ticks_.deadline - now_) / step,
                                           .work = steps_of_work(step),
                                           .lost_per_h = seen_.lost_per_h(),
                                           .found_per_h = seen_.found_per_h(),
                                           .spot_usd_h = job_.spot_usd_h,
                                           .on_demand_usd_h = job_.on_demand_usd_h});
  }

  double scheduled(int tick) const {
    return static_cast<double>(ticks_.work) * std::min(tick, ticks_.deadline) / ticks_.deadline;
  }

  void fill_with_spot(int available) {
    int left = available - count(Mode::spot);
    for (Machine& one : machines_) {
      if (left <= 0) return;
      if (one.mode != Mode::idle) continue;
      start(one, Mode::spot);
      --left;
    }
  }

  /// True if on-demand machines alone would still be in time after this tick.
  bool can_still_turn_back() const {
    int done = work_done_;
    int later = 0;  // work of all machines before the deadline, on-demand from the next tick on
    const int left = ticks_.deadline - now_ - 1;
    for (const Machine& one : machines_) {
      if (one.mode != Mode::idle && one.starting == 0) ++done;
      const int delay = one.mode == Mode::on_demand ? std::max(0, one.starting - 1) : ticks_.change_over;
      later += std::max(0, left - delay);
    }
    return done + later >= ticks_.work;
  }

  void work() {
    for (Machine& one : machines_) {
      if (one.mode == Mode::idle || done()) continue;
      (one.mode == Mode::spot ? spot_ticks_ : on_demand_ticks_) += 1;
      if (one.starting > 0)
        --one.starting;
      else
        ++work_done_;
    }
  }

  const DeadlineJob& job_;
  Policy policy_;
  Ticks ticks_;
  SpotChain seen_;
  std::optional<ExpectedCost> expected_;
  int learned_at_ = 0;
  std::vector<Machine> machines_;
  int now_ = 0;
  int work_done_ = 0;
  int spot_ticks_ = 0;
  int on_demand_ticks_ = 0;
  int interruptions_ = 0;
  bool catching_up_ = false;
  bool net_ = false;  ///< the safety net: on-demand machines to the end
};

/// The least remaining cost by tick, remaining work and running machine; computed backwards.
class Hindsight {
 public:
  Hindsight(const DeadlineJob& job, std::vector<int> available)
      : ticks_(ticks_of(job)),
        available_(std::move(available)),
        spot_usd_(job.spot_usd_h * ticks_.tick_s / 3600),
        on_demand_usd_(job.on_demand_usd_h * ticks_.tick_s / 3600),
        layers_(static_cast<std::size_t>(ticks_.change_over) + 2) {}

  double least_usd() {
    for (int tick = ticks_.deadline; tick >= 0; --tick) fill(tick);
    return layer(0).idle.back();
  }

 private:
  /// By remaining work.
  struct Layer {
    std::vector<double> idle, spot, on_demand;
  };

  Layer& layer(int tick) { return layers_[static_cast<std::size_t>(tick) % layers_.size()]; }

  /// True if a spot machine that starts at the tick lives long enough to work.
  bool can_start_spot(int tick) const {
    if (tick + ticks_.change_over > ticks_.deadline) return false;
    for (int later = tick; later < tick + ticks_.change_over; ++later)
      if (available_[static_cast<std::size_t>(later)] == 0) return false;
    return true;
  }

  void fill(int tick) {
    const double never = std::numeric_limits<double>::infinity();
    const auto states = static_cast<std::size_t>(ticks_.work) + 1;
    Layer now{std::vector(states, never), std::vector(states, never), std::vector(states, never)};
    now.idle[0] = now.spot[0] = now.on_demand[0] = 0;
    if (tick < ticks_.deadline) {
      const Layer& next = layer(tick + 1);
      const bool spot = available_[static_cast<std::size_t>(tick)] > 0;
      for (std::size_t left = 1; left < states; ++left) {
        now.on_demand[left] = on_demand_usd_ + next.on_demand[left - 1];
        if (spot) now.spot[left] = spot_usd_ + next.spot[left - 1];
        now.idle[left] = next.idle[left];
      }
      start(tick, now);
    }
    for (std::size_t left = 1; left < states; ++left) {
      now.on_demand[left] = std::min(now.on_demand[left], now.idle[left]);
      now.spot[left] = std::min(now.spot[left], now.idle[left]);
    }
    layer(tick) = std::move(now);
  }

  void start(int tick, Layer& now) {
    const int at_work = tick + ticks_.change_over;
    if (at_work > ticks_.deadline) return;
    const bool spot = can_start_spot(tick);
    const Layer& then = ticks_.change_over == 0 ? now : layer(at_work);
    for (std::size_t left = 1; left < now.idle.size(); ++left) {
      double least = std::min(now.idle[left], ticks_.change_over * on_demand_usd_ + then.on_demand[left]);
      if (spot) least = std::min(least, ticks_.change_over * spot_usd_ + then.spot[left]);
      now.idle[left] = least;
    }
  }

  Ticks ticks_;
  std::vector<int> available_;
  double spot_usd_;
  double on_demand_usd_;
  std::vector<Layer> layers_;
};

/// All available spot machines, then on-demand ones.
double bound_usd(const DeadlineJob& job, const std::vector<int>& available) {
  const Ticks ticks = ticks_of(job);
  int spot = 0;
  for (int count : available) spot += std::min(count, job.machines);
  spot = std::min(spot, ticks.work);
  const double least_usd_h = std::min(job.spot_usd_h, job.on_demand_usd_h);
  return (spot * least_usd_h + (ticks.work - spot) * job.on_demand_usd_h) * ticks.tick_s / 3600;
}

}  // namespace

std::string_view to_string(Policy policy) {
  switch (policy) {
    case Policy::on_demand:
      return "all on-demand";
    case Policy::greedy:
      return "greedy";
    case Policy::uniform:
      return "uniform progress";
    case Policy::forecast:
      return "forecast";
  }
  return "";
}

Ticks ticks_of(const DeadlineJob& job) {
  TW_CHECK(job.work_s > 0 && job.change_over_s >= 0 && job.machines > 0);
  const double changes = std::max(1.0, std::ceil(job.change_over_s / kLongestTick_s - kRounding));
  Ticks ticks{.tick_s = job.change_over_s > 0 ? job.change_over_s / changes : kLongestTick_s};
  ticks.change_over = job.change_over_s > 0 ? static_cast<int>(changes) : 0;
  ticks.deadline = static_cast<int>(std::floor(job.deadline_s / ticks.tick_s + kRounding));
  ticks.work = static_cast<int>(std::ceil(job.work_s / ticks.tick_s - kRounding)) * job.machines;
  return ticks;
}

bool feasible(const DeadlineJob& job) {
  const Ticks ticks = ticks_of(job);
  return (ticks.deadline - ticks.change_over) * job.machines >= ticks.work;
}

Replay replay(const DeadlineJob& job, const AvailabilityTrace& trace, double from_s, Policy policy) {
  Play play(job, policy);
  const int longest = std::max(play.ticks().deadline, 2 * (play.ticks().work + play.ticks().change_over));
  const std::vector<int> available = sample_availability(trace, from_s, play.ticks().tick_s, longest);
  while (!play.done() && play.now() < longest) play.step(available[static_cast<std::size_t>(play.now())]);
  return play.result();
}

double least_usd_in_hindsight(const DeadlineJob& job, const AvailabilityTrace& trace, double from_s) {
  const Ticks ticks = ticks_of(job);
  std::vector<int> available = sample_availability(trace, from_s, ticks.tick_s, ticks.deadline);
  if (job.machines > 1) return bound_usd(job, available);
  return Hindsight(job, std::move(available)).least_usd();
}

}  // namespace tw::plan
