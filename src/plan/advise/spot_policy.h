// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/advise/spot_market.h"

/// Spot machines while they last, on-demand machines when a deadline requires them: the decision for one
/// machine at one moment. `tw replan`, `tw up --keep` and `tw replay` ask the same object.
namespace tw::plan {

/// A zone as one machine sees it: its own, or where one more machine may be available.
struct ZoneView {
  std::string name;
  SpotSight sight;
  double spot_usd_h = 0;
  SpotHazards hazards;
  double move_usd = 0;  ///< once, for machines that come here from elsewhere: egress of their state

  /// Mean time that a machine of the zone lasts from now on, at most a day.
  double lasts_h() const;

  /// Time for which a lost zone is not asked again: until half of all such shortages have ended.
  double avoid_h() const;
};

/// What a policy decides on. Hours are of the machine that it is about.
struct SpotView {
  double work_left_h = 0;  ///< at work
  double time_left_h = 0;  ///< until the deadline
  double passed_h = 0;     ///< since the job's beginning
  double work_done_h = 0;
  double change_over_h = 0;  ///< from the decision for a machine to its first work, work to redo included
  double on_demand_usd_h = 0;
  std::vector<ZoneView> zones;
  SpotSight together{};  ///< whether any zone has a machine
  SpotHazards outlook;   ///< SpotMarket::outlook(), elsewhere()
  std::array<double, kSpotAges> elsewhere{};
  Mode mode = Mode::idle;
  std::size_t zone = 0;   ///< of a spot machine
  double starting_h = 0;  ///< until it works
};

enum class SpotAction {
  stay,  ///< go on as it is
  move,  ///< a spot machine in `zone`
  on_demand,
  wait,  ///< no machine
};

std::string_view to_string(SpotAction action);

struct SpotDecision {
  SpotAction action = SpotAction::wait;
  std::size_t zone = 0;
  std::string reason;  ///< with its numbers
};

/// The available zone with the least cost an hour of work, start, interruptions and egress of the state
/// included; the present one counts without a start.
std::optional<std::size_t> best_zone(const SpotView& view);

class SpotPolicy {
 public:
  virtual ~SpotPolicy() = default;
  virtual std::string_view name() const = 0;
  virtual SpotDecision decide(const SpotView& view) = 0;
};

/// Least expected cost by hazards that depend on the age of each zone's state: what `tw up --keep` follows.
class LivePolicy : public SpotPolicy {
 public:
  std::string_view name() const override { return "live"; }

  SpotDecision decide(const SpotView& view) override;

 private:
  std::optional<SpotDecision> move_to_cheaper(const SpotView& view, std::size_t best) const;
  const ExpectedCost& costs_for(const SpotView& view, double spot_usd_h);

  std::optional<ExpectedCost> costs_;
  double learned_at_h_ = 0;   ///< time left then
  double learned_usd_h_ = 0;  ///< spot price then
};

/// "all on-demand", "greedy" and "uniform progress" ("Can't Be Late", NSDI 2024), and "live".
std::vector<std::unique_ptr<SpotPolicy>> spot_policies();

/// Machines of one job before a deadline: what the safety net needs.
struct Standing {
  Mode mode = Mode::idle;
  double starting_h = 0;
};

/// True if on-demand machines alone would still be in time after the next step. A follower of a policy
/// turns all machines to on-demand, to the end, before this is false: then no policy is late.
bool can_still_turn_back(const std::vector<Standing>& machines, double work_left_h, double time_left_h,
                         double change_over_h, double step_h);

}  // namespace tw::plan
