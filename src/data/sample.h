// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tw::data {

/// A dense array, row-major, with as many values as the product of the shape.
struct Array {
  std::vector<std::uint64_t> shape;
  std::variant<std::vector<float>, std::vector<std::int64_t>> values;

  bool operator==(const Array&) const = default;
};

/// A sample of the data set as one of the run: it comes again in each epoch.
struct Pick {
  std::uint64_t index = 0;   ///< in the data set
  std::uint64_t number = 0;  ///< in the run

  auto operator<=>(const Pick&) const = default;
};

/// A sample that is not available.
struct MissingSample {
  std::uint64_t sample = 0;  ///< its number in the run
  std::string why;           ///< names object, key or bytes, and what is wrong
  bool skippable = false;    ///< it is gone, and others may go on without it

  bool operator==(const MissingSample&) const = default;
};

}  // namespace tw::data
