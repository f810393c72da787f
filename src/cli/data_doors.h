// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "host/store/stores.h"
#include "train/run_data.h"

namespace tw::cli {

/// What the data of a run may use here. threads: of calculation; two of them are left to it and the network.
inline train::DataDoors data_doors(host::Stores& stores, const train::RunOptions& run, int threads) {
  const train::ShardData& shards = run.data.shards;
  if (!shards.cache.empty()) stores.keep_in(shards.cache, shards.cache_limit);
  const auto now = [] {
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
  };
  return {.store = &stores, .now = now, .decoders = std::max(1, threads - 2)};
}

}  // namespace tw::cli
