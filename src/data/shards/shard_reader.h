// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "data/shards/picture.h"
#include "data/shards/prefetch.h"
#include "data/shards/shard_index.h"
#include "world/store.h"

namespace tw::data {

struct ReaderOptions {
  std::string index;                  ///< file of tw data index
  std::vector<std::string> fields{};  ///< "jpg", or "jpg;png": the first that a sample has; empty: all
  bool decodes = false;               ///< apply decode_field() to fields of known kinds
  PictureOptions picture{};
  int threads = 1;  ///< decoders, which also read files
  std::uint64_t memory_bytes = 256U << 20;
};

/// Fields of samples for a program with its own use for them: bytes, or decoded. One thread at a time.
class ShardReader {
 public:
  struct Sample {
    std::string_view key;              ///< valid as long as the reader
    std::vector<FieldValue> fields{};  ///< as many as fields(); if all were asked for, some may be empty
  };

  /// The store outlives it. Errors name index and field: also one of options.fields that some sample lacks.
  static Result<std::unique_ptr<ShardReader>> open(const ReaderOptions& options, world::Store& store);

  ShardReader(ShardIndex index, ReaderOptions options, world::Store& store);
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  /// Has at least one sample.
  const ShardIndex& index() const { return index_; }

  const std::vector<std::string>& fields() const { return fields_; }

  /// Only these will be read soon, in this order: time to fetch them. Each is below index().size().
  void expect(std::span<const std::uint64_t> samples);

  /// The samples with these numbers, in this order; numbers may repeat. Nothing if they are not there within
  /// `limit`. The error names object and bytes, and the sample.
  Result<std::optional<std::vector<Sample>>> read(std::span<const std::uint64_t> samples, Duration limit);

 private:
  std::vector<FieldPlace> choose(const ShardIndex::Sample& sample) const;
  Example decode(const Pick& pick, const std::vector<std::string_view>& bytes) const;

  ShardIndex index_;
  ReaderOptions options_;
  std::vector<std::string> fields_;
  std::vector<std::vector<std::uint32_t>> names_;  ///< number of each field's names in the index
  Prefetch prefetch_;                              // last: its threads use the other members
};

}  // namespace tw::data
