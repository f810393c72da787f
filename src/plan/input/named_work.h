// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "plan/model/cost.h"

namespace tw::plan {

class YamlFields;

/// training.fragments as it is by default: with streaming a round averages one of so many parts.
inline constexpr double kFragments = 4;
/// training.target_batch_size and training.batch_max by default.
inline constexpr double kUsualBatch = 512, kMostBatch = 65536;

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
  double parts = kFragments;  ///< training.fragments of the run, in mode streaming
  double samples_a_read = 0;  ///< 0: a microbatch
  DataSource data;

  /// Averaging is hidden behind the next accumulation.
  bool delayed() const { return mode == "delayed" || mode == "streaming"; }

  /// A round averages one of so many parts of the parameters.
  double fragments() const { return mode == "streaming" ? parts : 1; }

  bool operator==(const NamedWork&) const = default;
};

/// Takes model, work.sequence, tbs, pattern, codec, streams, mode, fragments, data_store, data_usd_per_gb
/// and samples_a_read. open: those of tbs, codec and mode that stay as they are.
void take_work(YamlFields& fields, NamedWork& work, const std::set<std::string>& open = {});

/// Takes a value of training.KEY of a run file, where it is about mode, codec, fragments or
/// target_batch_size. False: it is not, or it is no such value.
bool take_setting(std::string_view key, const std::string& value, NamedWork& work);

/// `purchase`: one of spot, on-demand and owned, or a list of them; empty where it is missing.
std::vector<market::Purchase> take_purchases(YamlFields& fields);

/// The workload with the named model, from the catalog or its file. `file`: the file that names it.
Result<Workload> workload_of(const NamedWork& work, const std::string& file);

/// The workload in the mode, codec and batch of `work`.
Workload in_mode_of(const NamedWork& work, Workload workload);

}  // namespace tw::plan
