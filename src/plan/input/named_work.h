// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/model/cost.h"

namespace tw::plan {

class YamlFields;

/// training.fragments as it is by default: with streaming a round averages one of so many parts.
inline constexpr double kFragments = 4;

/// The common fields of JOB.yaml and CLUSTER.yaml: the model, its batch, and how it is averaged.
struct NamedWork {
  std::string model;         ///< of the catalog; or a file of tw profile (*.yaml), relative to this one
  ModelProfile own_model{};  ///< of the map `model`, which names a model by its size; else without a name
  double sequence = 0;       ///< tokens of a sample; 0: what the model says
  double target_batch_size = 0;
  Pattern pattern = Pattern::tradewind;
  std::string codec = "fp16";
  double bytes_per_param = 2;  ///< by the codec
  int streams = 16;
  std::string mode = "sync";  ///< training.mode of the run
  double samples_a_read = 0;  ///< 0: a microbatch
  DataSource data;

  /// Averaging is hidden behind the next accumulation.
  bool delayed() const { return mode == "delayed" || mode == "streaming"; }

  /// A round averages one of so many parts of the parameters.
  double fragments() const { return mode == "streaming" ? kFragments : 1; }

  bool operator==(const NamedWork&) const = default;
};

/// Takes model, work.sequence, tbs, pattern, codec, streams, mode, data_store, data_usd_per_gb and
/// samples_a_read.
void take_work(YamlFields& fields, NamedWork& work);

/// `purchase`: one of spot, on-demand and owned, or a list of them; empty where it is missing.
std::vector<market::Purchase> take_purchases(YamlFields& fields);

/// The workload with the named model, from the catalog or its file. `file`: the file that names it.
Result<Workload> workload_of(const NamedWork& work, const std::string& file);

}  // namespace tw::plan
