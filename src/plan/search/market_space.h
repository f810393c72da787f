// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "market/lifetimes.h"
#include "market/tariffs.h"
#include "plan/input/job.h"
#include "plan/search/search.h"

/// The job's search space: offers that fit it, mean speeds of their machines, and averaging times.
namespace tw::plan {

/// Name of an offer's GPUs as in names of peers: "T4"; "4xT4" for a machine with four, which is one peer.
/// Without a GPU, the type of the machine.
std::string machine_name(const market::Offer& offer);

/// An offer that fits, and one peer on it.
struct Candidate {
  market::Offer offer;
  market::Site site;         ///< in the network tables
  double samples_per_s = 0;  ///< while it works
  double usd_per_h = 0;      ///< while it runs
  ReadRate reads;            ///< of its data
  double speed_factor = 1;   ///< of its 80 % range
  std::string speed_source;
  bool measured = true;  ///< its speed; else an estimate
  market::LifetimeLaw lifetimes;
  double start_s = 0;         ///< from the request until it contributes
  double join_s = 0;          ///< part of start_s after it runs
  double taken_per_h = 0;     ///< while it runs, shocks included
  bool free_traffic = false;  ///< counted so, for nobody knows the tariff
  double working_share = 1;   ///< of all time, replacements included
  double paid_share = 1;
};

struct MarketSpace {
  Space space;
  std::vector<Candidate> candidates;         ///< as space.choices
  std::vector<market::Site> sites;           ///< as space.sites
  double params_m = 0;                       ///< of the model, millions
  double state_gb = 0;                       ///< that a joining machine fetches
  const market::Tariffs* tariffs = nullptr;  ///< of the inputs
  int tensors = 0;                           ///< of the model
  double samples_a_read = 1;                 ///< of the data store
  std::string data;                          ///< the store that samples are read from, and its prices
  std::vector<std::string> left_out;         ///< offers that fit but for what is named, with their number
};

struct MarketInputs {
  const Job& job;
  const Workload& workload;
  const std::vector<market::Offer>& offers;
  const Knowledge& knowledge;
  const market::Tariffs& tariffs;
  std::vector<market::Lived> seen =
      {};  ///< how long own spot machines lived; corrects the laws of all of them
  /// On-demand machines without a GPU at sites of others are candidates too, after all others: anchors that
  /// hold the state and do not train. The search does not choose them.
  bool idle_anchors = false;
  /// A plan of the job is followed: its names were checked, and may have lost their last offer since.
  bool under_way = false;
};

/// An error names the limit that leaves no offer, and what there is without it. The inputs outlive the space.
Result<MarketSpace> market_space(const MarketInputs& inputs);

/// USD of egress for the state that one machine fetches from the cheapest of these sites; 0 without any.
double state_usd(const MarketSpace& market, const std::vector<market::Site>& holders,
                 const market::Site& machine);

/// The groups of a selection, largest first.
std::vector<PeerGroup> groups_of(const MarketSpace& market, const std::vector<int>& counts);

}  // namespace tw::plan
