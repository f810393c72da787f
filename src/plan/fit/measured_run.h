// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/model/cluster.h"

namespace tw::plan {

/// A published measurement of a Hivemind run, by the wall clock.
struct MeasuredRun {
  std::string id;
  std::string family;
  std::string model;
  double target_batch_size = 0;
  std::vector<PeerGroup> peers;
  bool clean = true;  ///< averaging worked in all rounds
  double samples_per_round = 0;
  double throughput_sps = 0;
  double local_sps = 0;
  double calc_s = 0;
  double comm_s = 0;
  double sent_mb_per_peer = 0;
  double vm_usd_per_h = 0;
  double egress_usd_per_h = 0;
  double data_usd_per_h = 0;
  double usd_per_million_samples = 0;  ///< 0: on-premise machines have no price

  double round_s() const { return samples_per_round / throughput_sps; }
};

/// The columns of the published table experiments.csv.
Result<std::vector<MeasuredRun>> read_measured_runs(const std::string& file, std::string_view text);

}  // namespace tw::plan
