// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/advise/spot_replay.h"

namespace tw::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The least remaining cost of one machine by tick, remaining work, what it runs as (nothing, on-demand, or
/// spot in one of the zones) and the zone where its state is; computed backwards.
class Hindsight {
 public:
  Hindsight(const DeadlineJob& job, const SampledZones& zones)
      : ticks_(ticks_of(job)),
        zones_(zones),
        on_demand_usd_(job.on_demand_usd_h * ticks_.tick_s / 3600),
        move_usd_(job.move_usd),
        places_(move_usd_ > 0 ? zones.available.front().size() + 1 : 1),
        layers_(static_cast<std::size_t>(ticks_.change_over) + 2) {}

  double least_usd() {
    for (int tick = ticks_.deadline; tick >= 0; --tick) fill(tick);
    return layer(0).idle.back().back();
  }

 private:
  using ByWork = std::vector<double>;  ///< by remaining work

  struct Layer {
    std::vector<ByWork> idle, on_demand;  ///< by the place of the state: each zone; last: none has it yet
    std::vector<ByWork> spot;             ///< by zone
  };

  std::size_t zones() const { return zones_.available.front().size(); }

  Layer& layer(int tick) { return layers_[static_cast<std::size_t>(tick) % layers_.size()]; }

  /// Where moves cost nothing, all zones are one place.
  std::size_t place_of(std::size_t zone) const { return places_ == 1 ? 0 : zone; }

  double move_usd(std::size_t place, std::size_t zone) const {
    return place == place_of(zone) || place + 1 == places_ ? 0 : move_usd_;
  }

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
    Layer now{.idle = std::vector(places_, never),
              .on_demand = std::vector(places_, never),
              .spot = std::vector(zones(), never)};
    for (auto* costs : {&now.idle, &now.on_demand, &now.spot})
      for (ByWork& of_work : *costs) of_work[0] = 0;
    if (tick < ticks_.deadline) {
      go_on(tick, now);
      start(tick, now);
    }
    for (std::size_t place = 0; place < places_; ++place) take(0, now.idle[place], now.on_demand[place]);
    for (std::size_t zone = 0; zone < zones(); ++zone) take(0, now.idle[place_of(zone)], now.spot[zone]);
    layer(tick) = std::move(now);
  }

  /// What costs `usd` more than `costs` may be had instead of `best`.
  static void take(double usd, const ByWork& costs, ByWork& best) {
    for (std::size_t left = 1; left < best.size(); ++left)
      best[left] = std::min(best[left], usd + costs[left]);
  }

  void go_on(int tick, Layer& now) {
    const Layer& next = layer(tick + 1);
    const auto work = [](double usd, const ByWork& then, ByWork& costs) {
      for (std::size_t left = 1; left < costs.size(); ++left) costs[left] = usd + then[left - 1];
    };
    for (std::size_t place = 0; place < places_; ++place) {
      work(on_demand_usd_, next.on_demand[place], now.on_demand[place]);
      now.idle[place] = next.idle[place];
    }
    for (std::size_t zone = 0; zone < zones(); ++zone)
      if (const double usd = spot_usd(zone, tick); usd < kNever) work(usd, next.spot[zone], now.spot[zone]);
  }

  void start(int tick, Layer& now) {
    const int at_work = tick + ticks_.change_over;
    if (at_work > ticks_.deadline) return;
    const Layer& then = ticks_.change_over == 0 ? now : layer(at_work);
    for (std::size_t place = 0; place < places_; ++place)
      take(ticks_.change_over * on_demand_usd_, then.on_demand[place], now.idle[place]);
    for (std::size_t zone = 0; zone < zones(); ++zone) {
      const double usd = start_usd(zone, tick);
      for (std::size_t place = 0; place < places_ && usd < kNever; ++place)
        take(usd + move_usd(place, zone), then.spot[zone], now.idle[place]);
    }
  }

  Ticks ticks_;
  const SampledZones& zones_;
  double on_demand_usd_, move_usd_;
  std::size_t places_;
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
