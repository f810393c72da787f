// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/model/spot_hazards.h"

namespace tw::plan {

/// What a machine is.
enum class Mode : std::uint8_t { idle, spot, on_demand };

/// Spot market as one machine meets it.
struct SpotOutlook {
  SpotHazards hazards;
  /// Probabilities that another zone is available when one is lost, by the age of the state of that other
  /// one.
  std::array<double, kSpotAges> elsewhere{};
  double spot_usd_h = 0;
  double on_demand_usd_h = 0;
};

/// Availability of the best zone, or of none, and the age of that.
struct SpotSight {
  bool up = false;
  double age_h = 0;
};

/// Least expected cost of the remaining work of one machine until its deadline, by dynamic programming over
/// time, work, mode, and the market with its age. Ages advance from bin to bin at random, as fast as time on
/// average.
class ExpectedCost {
 public:
  struct Span {
    double time_h = 0;  ///< until the deadline, at most
    double work_h = 0;  ///< at most
    double change_over_h = 0;
  };

  ExpectedCost(const SpotOutlook& outlook, const Span& span);

  /// Expected costs of the next step as idle, spot or on-demand, and of the best decisions after it; more
  /// than kImpossible where the deadline cannot be met. time_left_h is less the time in which a machine that
  /// starts does not work yet.
  std::array<double, 3> usd(double time_left_h, double work_left_h, SpotSight market, Mode now) const;

  static constexpr double kImpossible = 1e6;  ///< times the cost of an on-demand hour

 private:
  static constexpr int kMarkets = 2 * kSpotAges;
  static constexpr int kStates = 3 * kMarkets;

  static int market_of(bool up, int age) { return (up ? 0 : kSpotAges) + age; }

  static int state(int market, Mode mode) { return static_cast<int>(mode) * kMarkets + market; }

  float* row(int steps, int state);
  const float* row(int steps, int state) const;

  struct Next {
    int market = 0;
    float probability = 0;
    bool elsewhere = false;  ///< the zone is lost, and another one is available
  };

  /// A spot machine whose zone is lost becomes idle.
  static Mode after(const Next& next, Mode mode) {
    return mode == Mode::spot && (next.elsewhere || next.market >= kSpotAges) ? Mode::idle : mode;
  }

  void find_turns();
  void fill(int steps);
  void expect(int steps, Mode mode, int market, std::vector<float>& costs) const;
  double expected(double work, double slack, Mode mode, int market) const;
  double at(double work, double slack, int state) const;

  SpotOutlook outlook_;
  double step_h_;
  float start_ = 1;  ///< share of a step that a change-over takes
  int slack_;        ///< steps without work that the deadline allows
  int steps_;        ///< of work, and those
  std::array<std::vector<Next>, kMarkets> turns_;
  std::vector<float> usd_;  ///< [steps left][state][slack left]
};

}  // namespace tw::plan
