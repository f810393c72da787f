// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bind/tradewind.h"
#include "bind/tradewind_data.h"
#include "data/shards/shard_reader.h"
#include "host/store/stores.h"
#include "world/store.h"

namespace tw::bind {

/// A program's settings of its data.
struct DataSettings {
  data::ReaderOptions reader;
  std::string cache{};  ///< folder; empty: none
  std::uint64_t cache_bytes = 10ULL << 30;
};

/// The error names the setting and what was expected.
Result<DataSettings> read_data_settings(std::span<const tw_setting> given);

/// What stores do not answer, for the program: the first trouble of each store. Any thread.
class StoreTroubles {
 public:
  /// trouble: begins with the object, as host::Stores says it.
  void take(const std::string& trouble);

  /// Those since the last call, one a line.
  std::string rest();

 private:
  std::mutex mutex_;
  std::set<std::string> told_;  ///< stores
  std::string rest_;
};

/// What the data that this process has opened asked of stores since `before`; that of its forks is not known.
/// Any thread.
world::StoreUses data_uses(const world::StoreUses& before = {});

/// An index that a program has opened, and the samples that it reads. One thread at a time.
class ShardData {
 public:
  static Result<std::unique_ptr<ShardData>> open(const DataSettings& settings);

  ShardData();
  ShardData(const ShardData&) = delete;
  ShardData& operator=(const ShardData&) = delete;
  ~ShardData();

  data::ShardReader& reader() { return *reader_; }

  StoreTroubles& troubles() { return troubles_; }

  /// Empty, or why this process cannot use it: it was forked from the one that opened it.
  std::string foreign() const;

  /// Whether they arrived in time. values: as in tw_data_read; owned by this object.
  Result<bool> read(std::span<const std::uint64_t> samples, Duration limit, std::span<tw_value> values);

 private:
  StoreTroubles troubles_;
  host::Stores stores_{[this](const std::string& trouble) { troubles_.take(trouble); }};
  std::unique_ptr<data::ShardReader> reader_;  // uses stores_
  std::vector<data::ShardReader::Sample> shown_;
  int process_;  ///< that opened it
};

/// JSON (tw_data_facts, tw_data_sample). sample: less than the size of the index.
std::string facts_json(const data::ShardReader& reader);
std::string sample_json(const data::ShardIndex& index, std::uint64_t sample);

}  // namespace tw::bind
