// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/dataset.h"
#include "data/shards/picture.h"
#include "data/shards/shard_index.h"
#include "world/store.h"

namespace tw::data {

struct ShardOptions {
  std::string index;    ///< file of tw data index
  std::string inputs;   ///< field, or several separated by ';': the first that a sample has
  std::string targets;  ///< the same
  PictureOptions picture{};
  int threads = 1;  ///< decoders
  std::uint64_t memory_bytes = 256U << 20;
  std::uint64_t most_broken = 0;
  std::function<Duration()> now{};  ///< any thread; empty: waits are not measured
};

/// The error: no sample has any of these fields (ShardOptions::inputs), or one of them is not decoded.
Status check_fields(const ShardIndex& index, std::string_view list);

/// Samples of shards, fetched from the store. The store outlives it. Errors name index and field.
Result<std::unique_ptr<Dataset>> open_shard_dataset(const ShardOptions& options, world::Store& store);

}  // namespace tw::data
