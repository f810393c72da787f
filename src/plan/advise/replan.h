// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/advise/live_market.h"
#include "plan/advise/recommendation.h"

/// Advice for a run under way, at today's prices and with its measured speed.
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
  std::vector<PlannedGroup> alternatives{};  ///< one machine each, best first, if this one is not available

  bool operator==(const PlannedGroup&) const = default;
};

/// False for an anchor without a GPU, of DeepVM's tiers: MarketInputs::idle_anchors.
inline bool trains(const PlannedGroup& group) { return !group.gpu.empty(); }

/// PLAN.yaml, as `tw plan` writes it and `tw up` launches it.
struct PlanFile {
  std::string run;  ///< the run file; empty: not given. Relative to the file's folder, like the next one
  std::string job;  ///< JOB.yaml that the plan was made for; empty: not given
  std::vector<std::string> settings;  ///< "training.codec=fp16": of the run file, which the plan counts on
  std::vector<PlannedGroup> peers;
};

/// Errors name file and line.
Result<PlanFile> read_plan(const std::string& file, std::string_view text);

/// Reads only the peers.
Result<std::vector<PlannedGroup>> read_plan_file(const std::string& file, std::string_view text);

/// Source of offers that the market no longer has.
inline constexpr const char* kNoLongerOffered = "PLAN.yaml; no longer offered";

/// Offers for those machines of the plan that neither the market nor `owned` of the job has any more, at the
/// plan's prices.
std::vector<market::Offer> offers_of(const std::vector<PlannedGroup>& plan, const Job& job,
                                     const std::vector<market::Offer>& now);

/// The part of a run's cost that its event logs price, as `tw report` counts it.
struct Paid {
  double priced_hours = 0;                             ///< of RunProgress::peer_hours
  double machines_usd = 0;                             ///< for them
  std::optional<double> averaging_usd{}, reads_usd{};  ///< nothing: the logs have none, or no price of it
  double writes_usd = 0;                               ///< into stores
};

/// The speed that is compared with the model's.
struct RunSpeed {
  double samples_per_s = 0;  ///< of the last ten rounds without a loss or a resume; 0: not known yet
  double peers = 0;          ///< mean number that made it; 0: not known, so those that are alive
};

struct RunProgress {
  double samples = 0;
  double elapsed_h = 0;  ///< to now; of a run that is over: to its last record
  double peer_hours = 0;
  Paid paid{};
  double samples_per_s = 0;  ///< of the last ten rounds, as `tw report` tells it; 0: not known yet
  RunSpeed measured{};
  int peers = 0;  ///< that are alive
  int losses = 0;
  std::vector<ZoneSeen> zones{};
};

enum class Advice {
  keep,
  change,
  safety_net,  ///< on-demand machines to the end: any later, they would be too late
  done,
};

std::string_view to_string(Advice advice);

struct Change {
  PeerGroup peers;  ///< count: peers to add or drop
  market::Purchase purchase = market::Purchase::on_demand;
  double usd_per_h = 0;  ///< of a peer, now
};

struct Replan {
  Advice advice = Advice::keep;
  std::string reason;
  RunProgress progress;
  double usd_spent = 0;
  double usd_estimated = 0;  ///< of it, as the logs have no price: hours at the plan's mean price, the model
  double samples_left = 0;
  double hours_left = 0;  ///< until the deadline; 0: there is none
  double to_spare_h = 0;  ///< hours_left less the work of the plan's machines; negative: they are too slow
  std::optional<SpotDecision> policy;  ///< with a deadline and spot offers
  std::vector<std::string> avoided;    ///< zones that get no new machine, and why
  double speed_factor = 1;             ///< measured speed over that of the model
  int missing = 0;                     ///< machines of the plan that are not alive
  Option current;                      ///< the rest of the run with the plan's machines
  Option proposed;                     ///< the rest of the run as advised
  double switch_usd = 0;               ///< paid while added machines start and join, with the egress below
  double switch_state_usd = 0;         ///< egress of the state that they fetch
  double switch_h = 0;
  std::vector<Change> add, drop;
  std::vector<std::string> prices;  ///< changed prices, and machines that are no longer offered
};

struct ReplanInputs {
  const Job& job;
  const MarketSpace& market;  ///< today's, with offers_of(plan, job)
  const std::vector<PlannedGroup>& plan;
  const RunProgress& progress;
  std::int64_t now_unix_s = 0;
};

/// What is added is spot or on-demand as LivePolicy decides, never in a zone that lost a machine a short time
/// ago, and there is a safety net. A change must save more than twice its switching cost
/// and 5 % of the rest, unless a limit would be missed. Errors: a limit that cannot be met any more, with the
/// nearest one that can; or machines of the plan that the job's limits exclude.
Result<Replan> replan(const ReplanInputs& inputs);

std::string to_text(const Replan& replan);
std::string to_json(const Replan& replan);

}  // namespace tw::plan
