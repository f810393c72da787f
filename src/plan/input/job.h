// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "market/lifetimes.h"
#include "market/offer.h"
#include "plan/input/named_work.h"
#include "plan/model/cluster.h"

namespace tw::plan {

enum class Goal { cheapest, fastest, pareto };

std::string_view to_string(Goal goal);

/// Inputs of published planners beside the job (plan/methods/choice.h). 0: see there.
struct MethodInputs {
  double deepvm_usd_per_h = 0;  ///< DeepVM's price limit
  double deepvm_buffers = 0.5;  ///< checkpoints that a CPU anchor holds
  double deepvm_checkpoint_gib = 0;
  std::map<std::string, double> deepvm_scores{};  ///< by GPU; score of one GPU
  double spotdnn_worker_mb_s = 142;               ///< from a worker to the server, while alone
  double spotdnn_server_mb_s = 1200;
  double spotdnn_pcie_mb_s = 10000;
  double batch_per_gpu = 0;  ///< samples per worker and step, for spotDNN and Li et al.

  bool operator==(const MethodInputs&) const = default;
};

/// JOB.yaml: what to train, and within which limits. A limit of 0: none.
struct Job : NamedWork {
  double samples = 0;

  Goal goal = Goal::cheapest;
  int front_point = 0;  ///< point of the Pareto front to choose, from 1; 0: its knee
  double deadline_h = 0;
  double budget_usd = 0;
  double budget_usd_per_h = 0;
  double risk = 0.1;  ///< share of the scenarios that may miss the deadline or the budget

  std::vector<std::string> providers;  ///< of what is rented; empty: any; the next three likewise
  std::vector<std::string> regions;    ///< or provider:region
  std::vector<std::string> gpus;
  std::vector<market::Purchase> purchases;
  std::vector<std::string> exclude;  ///< offers with one of these names, as in the four lists above
  int peers_max = 16;
  int offer_max = 0;  ///< peers of one offer; 0: peers_max
  int domains_min = 1;
  std::map<std::string, double> quotas;  ///< peers; by quota_name() as the user wrote it
  /// The user's spelling of names in the lists, by list and name, where it differs.
  std::map<std::pair<std::string, std::string>, std::string> written{};
  std::vector<PeerGroup> owned;  ///< the user's own hosts, free of charge
  market::ZoneShocks shocks;     ///< of each failure domain's spot machines
  MethodInputs methods{};

  /// Those of mode, codec, tbs, fragments and outer that nobody gave (plan/advise/mode_choice.h).
  std::set<std::string> open{};
  std::string outer{};                ///< training.outer, where the plan chose it
  bool leaders_choose_batch = false;  ///< its run file says target_batch_size: auto, and JOB no tbs
  std::string run;                    ///< the run file, for `tw up`; relative to JOB.yaml
  std::string file;                   ///< path of JOB.yaml, if its reader sets it

  bool operator==(const Job&) const = default;
};

/// A name of a list of the job, such as "gpus", for messages.
const std::string& as_written(const Job& job, const std::string& list, const std::string& name);

/// A provider, region, GPU or way to buy as offers name it, whatever the spelling. Other names may lose their
/// case.
std::string market_name(const std::string& word);

Result<Job> read_job(const std::string& file, std::string_view text);

/// What the run file says of a mode, codec and batch that JOB leaves open. Nothing of a text that is no YAML.
void take_run_file(Job& job, std::string_view text);

/// "training.codec=fp16": what a plan of the job counts on in the run file.
std::vector<std::string> settings_of(const Job& job);

/// The job as a plan with these settings counts on it.
Job with_settings(Job job, const std::vector<std::string>& settings);

}  // namespace tw::plan
