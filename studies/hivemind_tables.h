// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/model/cluster.h"
#include "studies/hivemind.h"

namespace tw::studies {

/// A row of experiments.csv: what was run, and what was measured. Wall-clock figures alone.
struct PublishedRun {
  std::string id, group, domain, model;
  double params_m = 0;
  std::uint64_t target_batch_size = 0, microbatch = 0;
  std::vector<plan::PeerGroup> peers;
  bool clean = true;  ///< no flag that the reference advises against
  double samples_per_s = 0, samples_per_s_std = 0, local_samples_per_s = 0;
  double communication_s = 0, granularity = 0;
};

/// A direction between two sites, one TCP stream.
struct PublishedPath {
  double bytes_per_s = 0;
  double rtt_s = 0;
};

/// The published measurements of Erben et al., VLDB 2024, as tables in a folder (experiments.csv,
/// baselines.csv, network.csv, multistream.csv).
struct Reference {
  std::vector<PublishedRun> runs;
  /// Samples per wall-clock second of one machine without Hivemind, by GPU and model.
  std::map<std::pair<std::string, std::string>, double> baseline;
  std::map<std::pair<market::Site, market::Site>, PublishedPath> paths;

  /// In the other direction where this one was not measured.
  std::optional<PublishedPath> path(const market::Site& from, const market::Site& to) const;

  /// Rate of a machine's network card: the most that was seen on any path of the site.
  double nic_bytes_per_s(const market::Site& site) const;

 private:
  friend Result<Reference> read_reference(const std::string& folder);
  std::map<market::Site, double> nics_;
};

/// An error names the file and what is wrong with it.
Result<Reference> read_reference(const std::string& folder);

/// Samples per second that one machine accumulates under Hivemind: its baseline, and for each microbatch the
/// passes over gradients and their sum that accumulating adds (parameters x 4 bytes / memory bandwidth of
/// the GPU). Nothing for a GPU or model without baseline.
std::optional<double> speed_from_baseline(const Reference& reference, const PublishedRun& run,
                                          const std::string& gpu, double passes);

/// The same as the other clean runs of this model show it that have this GPU alone, their median; never from
/// the run itself. Nothing where there is no such run.
std::optional<double> speed_from_others(const Reference& reference, const PublishedRun& run,
                                        const std::string& gpu);

/// Memory passes of speed_from_baseline(), fitted (docs/benchmarks.md).
inline constexpr double kAccumulationPasses = 5.6;

/// The simulation of a published configuration; of the row it reads what was run, never what was measured.
/// Speeds are those of other runs, or else of the baseline.
/// An error says which machine, path or model is not in the tables.
Result<HivemindRun> hivemind_run(const Reference& reference, const PublishedRun& run,
                                 const HivemindCosts& costs, double passes = kAccumulationPasses);

}  // namespace tw::studies
