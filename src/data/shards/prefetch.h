// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/time.h"
#include "data/sample.h"
#include "data/shards/shard_index.h"
#include "world/store.h"

namespace tw::data {

/// Decoded values, or the bytes as in the shard; monostate: the sample has no such field.
using FieldValue = std::variant<std::monostate, Array, std::string>;

/// A sample in the form that a model takes.
struct Example {
  std::vector<FieldValue> fields{};
  std::string broken{};  ///< why there is none for anybody; there are no fields then
  std::string unread{};  ///< why its bytes could not be had here: that is no fault of the sample
};

/// Fetches samples of shards before they are needed, and decodes them on threads of its own. What lies side
/// by side in a shard is one read. What cannot be decoded is read once more, past any cache. It holds at most
/// `memory_bytes` beside what is waited for. Any thread.
class Prefetch {
 public:
  /// Makes an example from the bytes of the fields; errors go into `broken`. Any thread.
  using Decode = std::function<Example(const Pick&, const std::vector<std::string_view>& fields)>;

  struct Settings {
    int threads = 1;
    std::uint64_t memory_bytes = 256U << 20;
    std::uint64_t reads_at_once = 16;
  };

  /// Chooses the fields of a sample for Decode: places in ShardIndex::Sample::fields.
  using Choose = std::function<std::vector<FieldPlace>(const ShardIndex::Sample&)>;

  /// Index and store outlive it.
  Prefetch(const ShardIndex& index, world::Store& store, Settings settings, Choose choose, Decode decode);
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  ~Prefetch();

  /// Announces that only these will be taken soon, in this order: time to fetch them. Does not wait. Samples
  /// that were taken already are not fetched again while every list contains them.
  void expect(std::span<const Pick> samples);

  /// Waits at most `limit` for all of these; false when some are missing. They are kept until they are taken.
  bool wait(std::span<const Pick> samples, Duration limit);

  /// Waits for these. Errors: a broken sample, or bytes that cannot be read even now.
  Result<std::map<Pick, Example>> take(std::span<const Pick> samples);

  /// Number of reads that were made, and their bytes.
  std::uint64_t reads() const;
  std::uint64_t bytes_read() const;
  /// Bytes of samples in memory and under way.
  std::uint64_t held_bytes() const;

  /// Largest gap between samples that one read spans, and largest read.
  static constexpr std::uint64_t kMostGap = 16U << 10;
  static constexpr std::uint64_t kMostReadBytes = 8U << 20;

 private:
  struct State;

  void work();

  std::shared_ptr<State> state_;  // owners: this, and reads under way
  std::vector<std::jthread> threads_;
};

}  // namespace tw::data
