// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/advise/spot_replay.h"

namespace tw::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The least remaining cost of one machine by tick, remaining work and what it runs as: nothing, on-demand,
/// or spot in one of the zones; computed backwards.
class Hindsight {
 public:
  Hindsight(const DeadlineJob& job, const SampledZones& zones)
      : ticks_(ticks_of(job)),
        zones_(zones),
        on_demand_usd_(job.on_demand_usd_h * ticks_.tick_s / 3600),
        layers_(static_cast<std::size_t>(ticks_.change_over) + 2) {}

  double least_usd() {
    for (int tick = ticks_.deadline; tick >= 0; --tick) fill(tick);
    return layer(0).idle.back();
  }

 private:
  using ByWork = std::vector<double>;  ///< by remaining work

  struct Layer {
    ByWork idle, on_demand;
    std::vector<ByWork> spot;  ///< by zone
  };

  std::size_t zones() const { return zones_.available.front().size(); }

  Layer& layer(int tick) { return layers_[static_cast<std::size_t>(tick) % layers_.size()]; }

  double spot_usd(std::size_t zone, int tick) const {
    const auto at = static_cast<std::size_t>(tick);
    return zones_.available[at][zone] == 0 ? kNever : zones_.spot_usd_h[at][zone] * ticks_.tick_s / 3600;
  }

  /// Nothing but kNever if a spot machine that starts at the tick does not live long enough to work.
  double start_usd(std::size_t zone, int tick) const {
    double usd = 0;
    for (int later = tick; later < tick + ticks_.change_over; ++later) usd += spot_usd(zone, later);
    return usd;
  }

  void fill(int tick) {
    const auto states = static_cast<std::size_t>(ticks_.work) + 1;
    const ByWork never(states, kNever);
    Layer now{.idle = never, .on_demand = never, .spot = std::vector(zones(), never)};
    now.idle[0] = now.on_demand[0] = 0;
    for (ByWork& spot : now.spot) spot[0] = 0;
    if (tick < ticks_.deadline) {
      go_on(tick, now);
      start(tick, now);
    }
    for (std::size_t left = 1; left < states; ++left) {
      now.on_demand[left] = std::min(now.on_demand[left], now.idle[left]);
      for (ByWork& spot : now.spot) spot[left] = std::min(spot[left], now.idle[left]);
    }
    layer(tick) = std::move(now);
  }

  void go_on(int tick, Layer& now) {
    const Layer& next = layer(tick + 1);
    for (std::size_t left = 1; left < now.idle.size(); ++left) {
      now.on_demand[left] = on_demand_usd_ + next.on_demand[left - 1];
      now.idle[left] = next.idle[left];
    }
    for (std::size_t zone = 0; zone < zones(); ++zone) {
      const double usd = spot_usd(zone, tick);
      if (usd == kNever) continue;
      for (std::size_t left = 1; left < now.idle.size(); ++left)
        now.spot[zone][left] = usd + next.spot[zone][left - 1];
    }
  }

  void start(int tick, Layer& now) {
    const int at_work = tick + ticks_.change_over;
    if (at_work > ticks_.deadline) return;
    const Layer then = ticks_.change_over == 0 ? now : layer(at_work);
    const auto take = [&](double usd, const ByWork& costs) {
      for (std::size_t left = 1; left < now.idle.size(); ++left)
        now.idle[left] = std::min(now.idle[left], usd + costs[left]);
    };
    take(ticks_.change_over * on_demand_usd_, then.on_demand);
    for (std::size_t zone = 0; zone < zones(); ++zone)
      if (const double usd = start_usd(zone, tick); usd < kNever) take(usd, then.spot[zone]);
  }

  Ticks ticks_;
  const SampledZones& zones_;
  double on_demand_usd_;
  std::vector<Layer> layers_;
};

/// The cheapest available spot machines of all ticks, then on-demand ones.
double bound_usd(const DeadlineJob& job, const SampledZones& zones) {
  const Ticks ticks = ticks_of(job);
  std::vector<double> usd_h;  // of each machine and tick
  for (std::size_t tick = 0; tick < zones.available.size(); ++tick) {
    std::vector<double> here;
    for (std::size_t zone = 0; zone < zones.available[tick].size(); ++zone)
      here.insert(here.end(), static_cast<std::size_t>(std::min(zones.available[tick][zone], job.machines)),
                  std::min(zones.spot_usd_h[tick][zone], job.on_demand_usd_h));
    std::ranges::sort(here);
    here.resize(std::min(here.size(), static_cast<std::size_t>(job.machines)));
    usd_h.insert(usd_h.end(), here.begin(), here.end());
  }
  std::ranges::sort(usd_h);
  usd_h.resize(static_cast<std::size_t>(ticks.work), job.on_demand_usd_h);
  return std::accumulate(usd_h.begin(), usd_h.end(), 0.0) * ticks.tick_s / 3600;
}

}  // namespace

double least_usd_in_hindsight(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones,
                              double from_s) {
  const Ticks ticks = ticks_of(job);
  const SampledZones sampled(zones, from_s, ticks.tick_s, ticks.deadline, job.spot_usd_h);
  return job.machines > 1 ? bound_usd(job, sampled) : Hindsight(job, sampled).least_usd();
}

}  // namespace tw::plan
