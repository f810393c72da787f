// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "data/shards/shard_index.h"
#include "world/store.h"

namespace tw::data {

struct Verifying {
  int shards_at_once = 8;
  /// After each shard, on this thread: how many are done.
  std::function<void(std::size_t done)> progress{};
};

/// What a run would stumble on, in the order of the shards: bytes that cannot be had or are others than those
/// of the index, fields that cannot be decoded. Reads each byte once, shards in parallel, several reads
/// ahead.
std::vector<std::string> faults_of(const ShardIndex& index, world::Store& store, const Verifying& how = {});

}  // namespace tw::data
