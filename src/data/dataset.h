// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "world/store.h"

namespace tw::data {

/// A dense array, row-major, with as many values as the product of the shape.
struct Array {
  std::vector<std::uint64_t> shape;
  std::variant<std::vector<float>, std::vector<std::int64_t>> values;

  bool operator==(const Array&) const = default;
};

/// Some samples; the first dimension of both arrays counts them.
struct Batch {
  Array inputs;
  Array targets;

  bool operator==(const Batch&) const = default;
};

/// A sample of the data set as one of the run. Random choices (such as a crop of a picture) depend on its
/// number in the run, so they differ in each epoch.
struct Pick {
  std::uint64_t index = 0;   ///< in the data set
  std::uint64_t number = 0;  ///< in the run

  auto operator<=>(const Pick&) const = default;
};

/// A sample that is not available.
struct MissingSample {
  std::uint64_t sample = 0;  ///< its number in the run
  std::string why;           ///< names object, key or bytes, and what is wrong
  bool skippable = false;    ///< it is gone, and load() with `skips` goes on without it

  bool operator==(const MissingSample&) const = default;
};

/// Report on samples that have to be fetched.
struct LoadNews {
  Duration waited{};                     ///< for samples that were needed but not there yet
  std::string waited_for{};              ///< the last of them
  std::vector<MissingSample> skipped{};  ///< the run goes on without them
  world::StoreUses stores{};             ///< of the process until now
};

/// Samples that a thread waits for now.
struct LoadWait {
  std::string what;   ///< the first of them: object and bytes
  Duration lasted{};  ///< so far

  bool operator==(const LoadWait&) const = default;
};

/// Samples by number. Callable from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// At least 1, at most SampleOrder::kLargest.
  virtual std::uint64_t size() const = 0;

  /// The samples in the order of the indices, each below size(); an index may come twice. Throws
  /// std::runtime_error if a sample is not available.
  virtual Batch gather(std::span<const std::uint64_t> indices) const = 0;

  /// The same for a run. Skipped samples are left out, and the shape counts only the others.
  virtual Batch pick(std::span<const Pick> samples) const {
    std::vector<std::uint64_t> indices;
    for (const Pick& sample : samples) indices.push_back(sample.index);
    return gather(indices);
  }

  /// Waits until these can be picked at once. Returns the first one that is not available, if any: then none
  /// of them waits to be picked. skips: no other peer has those that are gone.
  virtual std::optional<MissingSample> load(std::span<const Pick> /*samples*/, bool /*skips*/) const {
    return std::nullopt;
  }

  /// Announces that only these will be picked soon, in this order: time to fetch them. Does not wait.
  virtual void expect(std::span<const Pick> /*samples*/) const {}

  /// True if expect() does anything.
  virtual bool fetches() const { return false; }

  /// Empty when no thread waits for samples, or when waits are not measured.
  virtual std::optional<LoadWait> waiting() const { return std::nullopt; }

  /// News since the last call.
  virtual LoadNews take_news() const { return {}; }
};

}  // namespace tw::data
