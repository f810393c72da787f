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

/// "a-{000..002}.tar" and "{x,y}.tar" as shells write them: all names, in order, numbers as wide as the first
/// one. The error names the text: braces that do not match or stand inside each other, letters, steps, or
/// more than a million names.
Result<std::vector<std::string>> expand_braces(const std::string& text);

struct Indexing {
  bool contents = false;  ///< digests of all bytes, too
  int shards_at_once = 8;
  /// After each shard, on the calling thread: the number of shards done.
  std::function<void(std::size_t done)> progress{};
  /// On the calling thread: what may be missing from the index, without a sample being wrong.
  std::function<void(const std::string& text)> warn{};
};

/// Looks at all shards, in their order. The error is that of the first one that has any; before it looks,
/// that one is named twice. Error::lasting: a shard is not there, or cannot be one; else a store failed.
Result<ShardIndex> index_shards(const std::vector<std::string>& objects, world::Store& store,
                                const Indexing& how);

/// What contents are read and digested by.
inline constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 20;

/// Digest of the bytes of an object, as Shard::contents has it: of the digests of its parts of kPartBytes.
class ContentsDigest {
 public:
  /// The next part.
  void add(const std::string& part);

  std::string value() const;

 private:
  std::string digests_;
};

}  // namespace tw::data
