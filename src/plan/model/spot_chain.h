// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tw::plan {

/// Availability of a spot machine as a Markov chain that learns: it goes and comes at constant rates,
/// estimated from observations and a prior that counts as the first hours.
class SpotChain {
 public:
  SpotChain(int machines, double tick_s);

  /// Number of machines that were available during the next tick.
  void see(int available);

  double lost_per_h() const;
  double found_per_h() const;

 private:
  int machines_;
  double tick_h_;
  double up_h_;
  double down_h_;
  double lost_ = 0;
  double found_ = 0;
  int last_ = -1;
};

/// State of a machine.
enum class Mode : std::uint8_t { idle, spot, on_demand };

/// Choices of least expected cost if the spot market is such a chain, by dynamic programming. A step is one
/// change-over.
class ExpectedCost {
 public:
  struct Inputs {
    double step_h = 0;
    int steps = 0;  ///< until the deadline
    int work = 0;   ///< steps of work
    double lost_per_h = 0;
    double found_per_h = 0;
    double spot_usd_h = 0;
    double on_demand_usd_h = 0;
  };

  explicit ExpectedCost(const Inputs& inputs);

  /// Choice with this many steps and this much work left; `up`: a spot machine is available.
  Mode choice(int steps_left, int work_left, bool up, Mode now) const;

 private:
  static constexpr int kStates = 6;  ///< up or not x mode

  static int state(bool up, Mode mode) { return (up ? 3 : 0) + static_cast<int>(mode); }

  std::size_t place(int steps_left, int work_left) const;

  /// up: probability that a spot machine is available then.
  double expected(int work_left, double up, Mode mode) const;
  void fill(int steps_left, const Inputs& inputs);

  int steps_;
  int work_;
  std::vector<double> cost_;   ///< by this many steps left; [work][state]
  std::vector<double> after_;  ///< the same with one step less
  std::vector<Mode> choices_;  ///< [steps][work][state]
};

}  // namespace tw::plan
