// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/advise/recommendation.h"

/// What a run under way should do next, with today's prices and the speed that it was measured to have.
namespace tw::plan {

/// Machines of PLAN.yaml.
struct PlannedGroup {
  market::Site site;
  std::string vm_type;
  std::string gpu;  ///< "T4", "4xT4" for four in one machine; empty: none
  int count = 0;
  market::Purchase purchase = market::Purchase::on_demand;
  double usd_per_h = 0;                      ///< of a peer
  bool anchor = false;                       ///< its peers are anchors: role in the file
  std::vector<PlannedGroup> alternatives{};  ///< of one machine each, best first: where it cannot be had

  bool operator==(const PlannedGroup&) const = default;
};

/// Not so an anchor without a GPU, of DeepVM's tiers: MarketInputs::idle_anchors.
inline bool trains(const PlannedGroup& group) { return !group.gpu.empty(); }

/// PLAN.yaml, as `tw plan` writes it and `tw up` launches it.
struct PlanFile {
  std::string run;  ///< the run file; empty: not said. Relative to the file's folder, like the next one
  std::string job;  ///< JOB.yaml, which the plan was made for; empty: not said
  std::vector<PlannedGroup> peers;
};

/// Errors name file and line.
Result<PlanFile> read_plan(const std::string& file, std::string_view text);

/// The peers alone.
Result<std::vector<PlannedGroup>> read_plan_file(const std::string& file, std::string_view text);

/// The source of such offers.
inline constexpr const char* kNoLongerOffered = "PLAN.yaml; no longer offered";

/// As offers of a market that may no longer have them, at the prices of then.
std::vector<market::Offer> offers_of(const std::vector<PlannedGroup>& plan,
                                     const std::vector<market::Offer>& now);

struct RunProgress {
  double samples = 0;
  double elapsed_h = 0;
  double peer_hours = 0;
  double samples_per_s = 0;  ///< of late; 0: not known yet
  int peers = 0;             ///< that live
  int losses = 0;
};

enum class Advice {
  keep,
  change,
  safety_net,  ///< on-demand machines to the end: later they would be too late
  done,
};

std::string_view to_string(Advice advice);

struct Change {
  PeerGroup peers;  ///< count: to add
  market::Purchase purchase = market::Purchase::on_demand;
  double usd_per_h = 0;  ///< of a peer, now
};

struct Replan {
  Advice advice = Advice::keep;
  std::string reason;
  RunProgress progress;
  double usd_spent = 0;  ///< peer hours at the plan's mean price, traffic and data by the model
  double samples_left = 0;
  double hours_left = 0;    ///< until the deadline; 0: there is none
  double ahead_h = 0;       ///< of uniform progress to the deadline; negative: behind
  double speed_factor = 1;  ///< measured speed over that of the model
  int missing = 0;          ///< machines of the plan that do not live
  Option current;           ///< what is left, with the plan's machines
  Option proposed;          ///< with what is advised
  double switch_usd = 0;    ///< paid while added machines start and join
  double switch_h = 0;
  std::vector<Change> add, drop;
  std::vector<std::string> prices;  ///< that changed since the plan, and machines that are no longer offered
};

struct ReplanInputs {
  const Job& job;
  const MarketSpace& market;  ///< now, with offers_of(plan)
  const std::vector<PlannedGroup>& plan;
  const RunProgress& progress;
  std::int64_t now_unix_s = 0;
};

/// The rules of "Can't Be Late" (NSDI 2024): spot machines while ahead of uniform progress, on-demand for
/// what is added while behind, and the safety net. A change must save more than twice what switching costs
/// and 5 % of what is left, unless a limit would be missed. An error: a limit that cannot be kept any more,
/// and the nearest that can; or machines of the plan that the job's limits leave out.
Result<Replan> replan(const ReplanInputs& inputs);

std::string to_text(const Replan& replan);
std::string to_json(const Replan& replan);

}  // namespace tw::plan
