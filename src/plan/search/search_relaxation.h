// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/search/search.h"

/// Bounds of speed at a price: Lagrangian relaxation. For a slope k (samples/s that a dollar per hour is
/// worth) the gain of a peer is its samples/s minus k times its price. No n peers together are faster than k
/// * price + the n largest gains, for any k; gains add up over sites. The same holds of their speed with bad
/// luck.
namespace tw::plan {

/// Largest gains of numbers of peers from a set of choices. Quotas that choices of the set share are kept, if
/// each of their peers uses the same amount.
class Gains {
 public:
  /// Gain of n peers, one for each slope; minus infinity if there are not as many.
  const double* gain(int peers) const { return &gain_[static_cast<std::size_t>(peers) * slopes_]; }

  double cheapest_usd_per_h(int peers) const { return cheapest_[static_cast<std::size_t>(peers)]; }

  /// Price of the fastest.
  double dearest_usd_per_h(int peers) const { return dearest_[static_cast<std::size_t>(peers)]; }

 private:
  friend class Relaxation;

  std::size_t slopes_ = 0;
  std::vector<double> gain_;  ///< [peers][slope]
  std::vector<double> cheapest_;
  std::vector<double> dearest_;
};

class Relaxation {
 public:
  explicit Relaxation(const Space& space);

  /// By slope, then by price only: the choices of single peers, largest gain first.
  using Ranking = std::vector<std::vector<std::uint32_t>>;

  Ranking ranking_of(const std::vector<std::size_t>& choices) const;
  void merge(Ranking& into, const Ranking& other) const;
  Gains gains_of(const Ranking& ranking) const;

  /// Number of gains: first those of speed, then, where it is asked, those of the speed with bad luck. The
  /// first of each is 0: speed at any price.
  std::size_t slopes() const { return measures_ * slopes_.size(); }

  /// Gain of these machines.
  double gain_of(const MachineSums& machines, std::size_t slope) const {
    const double speed = slope < slopes_.size() ? machines.samples_per_s : machines.slow_samples_per_s;
    return speed - slopes_[slope % slopes_.size()] * machines.usd_per_h;
  }

  /// Sums over machines that are in the plan already, and bounds with those still to come.
  struct Sums {
    std::vector<double> gain;  ///< by slope; of all
    double cheapest_usd_per_h = 0;
    double dearest_usd_per_h = 0;  ///< a higher price makes nothing faster
  };

  Sums none() const;
  void add(Sums& sums, const Gains& gains, int peers) const;

  /// Lower bound of the value of machines with these sums and this averaging. `enough`: the bound needs no
  /// more precision than to tell on which side of this value it is.
  double least_value(const Objective& objective, const Sums& sums, const Averaging& round,
                     double enough) const;

 private:
  struct Interval;

  using Ranked = std::vector<std::uint32_t>;

  Ranked merged(const Ranked& a, const Ranked& b, std::size_t slope) const;
  double gain_of(std::size_t choice, std::size_t slope) const;
  bool before(std::uint32_t a, std::uint32_t b, std::size_t slope) const;
  double fastest_at(const Sums& sums, double usd_per_h, std::size_t measure) const;

  const Space& space_;
  std::vector<double> slopes_;
  std::size_t measures_ = 1;  ///< 2: speed with bad luck, too
  double least_start_h_ = 0;
  std::vector<int> quota_peers_;  ///< most peers that fit in each
};

}  // namespace tw::plan
