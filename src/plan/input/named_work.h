// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/model/cost.h"

namespace tw::plan {

class YamlFields;

/// The fields that JOB.yaml and CLUSTER.yaml have in common: the model, its batch, and how it is averaged.
struct NamedWork {
  std::string model;    ///< of the catalog; or
  std::string profile;  ///< a file with a model of one's own, relative to this one
  double target_batch_size = 0;
  Pattern pattern = Pattern::tradewind;
  std::string codec = "fp16";
  double bytes_per_param = 2;  ///< by the codec
  int streams = 16;
  bool delayed = false;
  double samples_a_read = 0;  ///< 0: a microbatch
  DataSource data;

  bool operator==(const NamedWork&) const = default;
};

/// Takes model, profile, tbs, pattern, codec, streams, mode, data_store, data_usd_per_gb and samples_a_read.
void take_work(YamlFields& fields, NamedWork& work);

/// With the model that is named, from the catalog or its file. `file`: the one that names it.
Result<Workload> workload_of(const NamedWork& work, const std::string& file);

}  // namespace tw::plan
