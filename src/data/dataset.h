// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace tw::data {

/// A dense array, row-major; as many values as the product of the shape.
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

/// Samples by number. Immutable, hence free for any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// At least 1, at most SampleOrder::kLargest.
  virtual std::uint64_t size() const = 0;

  /// The samples in the order of the indices, each below size(); an index may come twice.
  virtual Batch gather(std::span<const std::uint64_t> indices) const = 0;
};

}  // namespace tw::data
