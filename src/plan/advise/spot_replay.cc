// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/spot_replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"

namespace tw::plan {
namespace {

constexpr double kLongestTick_s = 300;
constexpr double kShortestTick_s = 60;
constexpr double kRounding = 1e-9;

struct Machine {
  Mode mode = Mode::idle;
  std::size_t zone = 0;
  int starting = 0;  ///< ticks until its first work
  int begun = 0;     ///< tick
  double usd = 0;
  std::optional<std::size_t> state{};  ///< zone of the last spot machine
};

/// One replay; a step is one tick.
class Play {
 public:
  Play(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones, SpotPolicy& policy)
      : job_(job),
        zones_(zones),
        policy_(policy),
        ticks_(ticks_of(job)),
        tick_h_(ticks_.tick_s / 3600),
        market_(job.machines, tick_h_, priors_of(zones)),
        machines_(static_cast<std::size_t>(job.machines)) {}

  bool done() const { return work_done_ >= ticks_.work; }

  int now() const { return now_; }

  const Ticks& ticks() const { return ticks_; }

  /// A tick before the job begins.
  void watch(const std::vector<int>& available) { market_.see(available); }

  void step(const std::vector<int>& available, const std::vector<double>& spot_usd_h) {
    market_.see(available);
    spot_usd_h_ = spot_usd_h;
    const std::vector<Machine> before = machines_;
    take_away(available);
    const std::vector<Machine> left = machines_;
    decide();
    note_ends(before, left);
    work();
    ++now_;
  }

  Replay result() {
    for (std::size_t i = 0; i < machines_.size(); ++i) note_end(i, machines_[i], false);
    Replay result = so_far_;
    result.finished_s = now_ * ticks_.tick_s;
    result.late = !done() || now_ > ticks_.deadline;
    return result;
  }

 private:
  static std::vector<SpotHazards> priors_of(const std::vector<AvailabilityTrace>& zones) {
    std::vector<SpotHazards> priors;
    for (const AvailabilityTrace& zone : zones) priors.push_back(prior_without(zone.id));
    return priors;
  }

  int running_in(std::size_t zone) const {
    return static_cast<int>(std::ranges::count_if(
        machines_, [&](const Machine& one) { return one.mode == Mode::spot && one.zone == zone; }));
  }

  void take_away(const std::vector<int>& available) {
    for (std::size_t zone = 0; zone < available.size(); ++zone) {
      int excess = running_in(zone) - available[zone];
      for (auto one = machines_.rbegin(); one != machines_.rend() && excess > 0; ++one) {
        if (one->mode != Mode::spot || one->zone != zone) continue;
        *one = {.state = zone};
        ++so_far_.interruptions;
        --excess;
      }
    }
  }

  void start(Machine& machine, Mode mode, std::size_t zone) {
    const bool spot = mode == Mode::spot;
    const double move_usd = spot ? usd_to(zone, machine) : 0;
    machine = {.mode = mode,
               .zone = zone,
               .starting = mode == Mode::idle ? 0 : ticks_.change_over,
               .begun = now_,
               .usd = move_usd,
               .state = spot ? zone : machine.state};
    so_far_.moves += spot ? 1 : 0;
    so_far_.usd += move_usd;
  }

  double usd_to(std::size_t zone, const Machine& machine) const {
    return machine.state && *machine.state != zone ? job_.move_usd : 0;
  }

  void decide() {
    if (net_) return all_on_demand();
    const std::vector<Machine> before = machines_;
    const int moves_before = so_far_.moves;
    const double usd_before = so_far_.usd;
    for (Machine& one : machines_) obey(one, policy_.decide(view_of(one)));
    if (turns_back_in_time()) return;
    machines_ = before;
    so_far_.moves = moves_before;
    so_far_.usd = usd_before;
    net_ = true;
    all_on_demand();
  }

  /// A machine that is already where it should be goes on.
  void obey(Machine& machine, const SpotDecision& decision) {
    switch (decision.action) {
      case SpotAction::stay:
        return;
      case SpotAction::move:
        TW_CHECK(decision.zone < zones_.size());
        if (machine.mode == Mode::spot && machine.zone == decision.zone) return;
        return start(machine, Mode::spot, decision.zone);
      case SpotAction::on_demand:
        if (machine.mode == Mode::on_demand) return;
        return start(machine, Mode::on_demand, 0);
      case SpotAction::wait:
        return start(machine, Mode::idle, 0);
    }
  }

  /// left: what the market left of the machines before.
  void note_ends(const std::vector<Machine>& before, const std::vector<Machine>& left) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool taken = before[i].mode != left[i].mode;
      const bool goes_on = machines_[i].mode == before[i].mode && machines_[i].begun == before[i].begun;
      if (taken || !goes_on) note_end(i, before[i], taken);
    }
  }

  void note_end(std::size_t place, const Machine& machine, bool taken) {
    if (machine.mode == Mode::idle || machine.begun == now_) return;
    so_far_.stays.push_back({static_cast<int>(place), machine.mode, machine.begun * ticks_.tick_s,
                             now_ * ticks_.tick_s, machine.usd, taken});
  }

  void all_on_demand() {
    for (Machine& one : machines_)
      if (one.mode != Mode::on_demand) start(one, Mode::on_demand, 0);
  }

  /// Each machine does its part of the remaining work as if it were alone.
  SpotView view_of(const Machine& machine) const {
    SpotView view{.work_left_h = (ticks_.work - work_done_) * tick_h_ / job_.machines,
                  .time_left_h = (ticks_.deadline - now_) * tick_h_,
                  .passed_h = now_ * tick_h_,
                  .work_done_h = work_done_ * tick_h_ / job_.machines,
                  .change_over_h = ticks_.change_over * tick_h_,
                  .on_demand_usd_h = job_.on_demand_usd_h,
                  .zones = {},
                  .outlook = market_.outlook(),
                  .elsewhere = market_.elsewhere(),
                  .mode = machine.mode,
                  .zone = machine.zone,
                  .starting_h = machine.starting * tick_h_};
    int running = 0;
    for (std::size_t z = 0; z < zones_.size(); ++z) {
      running += running_in(z);
      // A machine's own place in its zone is the last one that is taken.
      const bool here = machine.mode == Mode::spot && machine.zone == z;
      view.zones.push_back({.name = zones_[z].id,
                            .sight = market_.zone(z, here ? place_of(machine) : running_in(z)),
                            .spot_usd_h = spot_usd_h_[z],
                            .hazards = market_.hazards(z),
                            .move_usd = usd_to(z, machine)});
    }
    view.together = market_.together(running);
    return view;
  }

  /// Number of machines of its zone before it.
  int place_of(const Machine& machine) const {
    int place = 0;
    for (const Machine& one : machines_) {
      if (&one == &machine) break;
      place += one.mode == Mode::spot && one.zone == machine.zone ? 1 : 0;
    }
    return place;
  }

  bool turns_back_in_time() const {
    std::vector<Standing> standing;
    for (const Machine& one : machines_) standing.push_back({one.mode, one.starting * tick_h_});
    return can_still_turn_back(standing, (ticks_.work - work_done_) * tick_h_,
                               (ticks_.deadline - now_) * tick_h_, ticks_.change_over * tick_h_, tick_h_);
  }

  void work() {
    for (Machine& one : machines_) {
      if (one.mode == Mode::idle || done()) continue;
      const bool spot = one.mode == Mode::spot;
      (spot ? so_far_.spot_h : so_far_.on_demand_h) += tick_h_;
      const double usd = tick_h_ * (spot ? spot_usd_h_[one.zone] : job_.on_demand_usd_h);
      so_far_.usd += usd;
      one.usd += usd;
      if (one.starting > 0)
        --one.starting;
      else
        ++work_done_;
    }
  }

  const DeadlineJob& job_;
  const std::vector<AvailabilityTrace>& zones_;
  SpotPolicy& policy_;
  Ticks ticks_;
  double tick_h_;
  SpotMarket market_;
  std::vector<Machine> machines_;
  std::vector<double> spot_usd_h_;  ///< now, by zone
  int now_ = 0;
  int work_done_ = 0;
  Replay so_far_;
  bool net_ = false;  ///< the safety net: on-demand machines to the end
};

}  // namespace

CoveredTime::CoveredTime(const std::vector<AvailabilityTrace>& zones) {
  double end_s = std::numeric_limits<double>::infinity();
  for (const AvailabilityTrace& zone : zones) {
    TW_CHECK(!zone.changes.empty());
    begin_s = std::max(begin_s, zone.changes.front().at_s);
    end_s = std::min(end_s, zone.changes.back().at_s);
  }
  length_s = std::max(0.0, end_s - begin_s);
}

SampledZones::SampledZones(const std::vector<AvailabilityTrace>& zones, double from_s, double tick_s,
                           int ticks, double usd_h)
    : available(static_cast<std::size_t>(ticks), std::vector<int>(zones.size())),
      spot_usd_h(static_cast<std::size_t>(ticks), std::vector<double>(zones.size())) {
  const double begin_s = CoveredTime(zones).begin_s;
  for (std::size_t z = 0; z < zones.size(); ++z) {
    const double own_s = begin_s - zones[z].changes.front().at_s + from_s;
    const std::vector<int> machines = sample_availability(zones[z], own_s, tick_s, ticks);
    const std::vector<double> prices = sample_prices(zones[z], own_s, tick_s, ticks, usd_h);
    for (std::size_t tick = 0; tick < available.size(); ++tick) {
      available[tick][z] = machines[tick];
      spot_usd_h[tick][z] = prices[tick];
    }
  }
}

Ticks ticks_of(const DeadlineJob& job) {
  TW_CHECK(job.work_s > 0 && job.change_over_s >= 0 && job.machines > 0);
  const double change_over_s = std::max(job.change_over_s, kShortestTick_s);
  const double changes = std::max(1.0, std::ceil(change_over_s / kLongestTick_s - kRounding));
  Ticks ticks{.tick_s = job.change_over_s > 0 ? change_over_s / changes : kLongestTick_s};
  ticks.change_over = job.change_over_s > 0 ? static_cast<int>(changes) : 0;
  ticks.deadline = static_cast<int>(std::floor(job.deadline_s / ticks.tick_s + kRounding));
  ticks.work = static_cast<int>(std::ceil(job.work_s / ticks.tick_s - kRounding)) * job.machines;
  return ticks;
}

bool feasible(const DeadlineJob& job) {
  const Ticks ticks = ticks_of(job);
  return (ticks.deadline - ticks.change_over) * job.machines >= ticks.work;
}

Replay replay(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones, double from_s,
              SpotPolicy& policy) {
  Play play(job, zones, policy);
  const double tick_s = play.ticks().tick_s;
  const int before = static_cast<int>(std::floor(from_s / tick_s + kRounding));
  const SampledZones past(zones, from_s - before * tick_s, tick_s, before, job.spot_usd_h);
  for (const std::vector<int>& available : past.available) play.watch(available);
  const int longest = std::max(play.ticks().deadline, 2 * (play.ticks().work + play.ticks().change_over));
  const SampledZones then(zones, from_s, tick_s, longest, job.spot_usd_h);
  while (!play.done() && play.now() < longest) {
    const auto tick = static_cast<std::size_t>(play.now());
    play.step(then.available[tick], then.spot_usd_h[tick]);
  }
  return play.result();
}

}  // namespace tw::plan
