// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/shards/shard_index.h"
#include "world/store.h"

namespace tw::data {

/// Expands "a-{000..002}.tar" and "{x,y}.tar" as shells do: all names, in order, numbers as wide as the first
/// one. The error names the text: unmatched braces, or more than a million names.
Result<std::vector<std::string>> expand_braces(const std::string& text);

struct Indexing {
  bool contents = false;  ///< digests of all bytes, too
  int shards_at_once = 8;
  /// After each shard, on the calling thread: the number of shards done.
  std::function<void(std::size_t done)> progress{};
};

/// Indexes all shards in their order. The error is that of the first shard that has one.
Result<ShardIndex> index_shards(const std::vector<std::string>& objects, world::Store& store,
                                const Indexing& how);

/// Digest of an object's bytes for Shard::contents: the digest of the digests of its 1 MiB parts.
Result<std::string> digest_contents(world::Store& store, const Shard& shard);

}  // namespace tw::data
