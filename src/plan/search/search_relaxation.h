// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/search/search.h"

/// How fast machines can be at a price: Lagrange's relaxation. For a slope k (samples/s that a dollar per
/// hour is worth) the gain of a peer is its samples/s less k times its price. No n peers together are faster
/// than k * price + the n largest gains, for any k; and gains add up over sites.
namespace tw::plan {

/// What numbers of peers from a set of choices gain at most. Quotas that choices of the set share are kept,
/// where their peers use as much of them.
class Gains {
 public:
  /// Gain of n peers, one for each slope; minus infinity where there are not so many.
  const double* gain(int peers) const { return &gain_[static_cast<std::size_t>(peers) * slopes_]; }

  /// Price of the machines that gain so much.
  const double* usd_per_h(int peers) const { return &usd_per_h_[static_cast<std::size_t>(peers) * slopes_]; }

  double cheapest_usd_per_h(int peers) const { return cheapest_[static_cast<std::size_t>(peers)]; }

 private:
  friend class Relaxation;

  std::size_t slopes_ = 0;
  std::vector<double> gain_;  ///< [peers][slope]
  std::vector<double> usd_per_h_;
  std::vector<double> cheapest_;
};

class Relaxation {
 public:
  explicit Relaxation(const Space& space);

  /// By slope, then by price alone: the choices of single peers, the largest gain first.
  using Ranking = std::vector<std::vector<std::uint32_t>>;

  Ranking ranking_of(const std::vector<std::size_t>& choices) const;
  void merge(Ranking& into, const Ranking& other) const;
  Gains gains_of(const Ranking& ranking) const;

  /// The first is 0: speed at any price.
  const std::vector<double>& slopes() const { return slopes_; }

  /// Machines that are in the plan by now, and what all of it gains at most with those to come.
  struct Sums {
    std::vector<double> gain;  ///< by slope; of all
    double cheapest_usd_per_h = 0;
    double dearest_usd_per_h = 0;  ///< more than that makes nothing faster
  };

  Sums none() const;
  void add(Sums& sums, const Gains& gains, int peers) const;

  /// No machines with these sums, averaged so, have a lesser value; `enough`: a value that more precision is
  /// not needed for, whichever side of it the least is on.
  double least_value(const Objective& objective, const Sums& sums, const Averaging& round,
                     double enough) const;

 private:
  struct Interval;

  using Ranked = std::vector<std::uint32_t>;

  Ranked merged(const Ranked& a, const Ranked& b, std::size_t slope) const;
  double gain_of(std::size_t choice, std::size_t slope) const;
  bool before(std::uint32_t a, std::uint32_t b, std::size_t slope) const;
  double fastest_at(const Sums& sums, double usd_per_h) const;

  const Space& space_;
  std::vector<double> slopes_;
  std::vector<int> quota_peers_;  ///< that fit in each at most
};

}  // namespace tw::plan
