// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tw {

/// The half-open interval [first, first + count).
struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return first + count; }

  bool operator==(const Range&) const = default;
};

/// A set of numbers as sorted, disjoint, non-adjacent, non-empty ranges.
class RangeSet {
 public:
  RangeSet() = default;

  explicit RangeSet(Range range) { add(range); }

  void add(Range range);
  void add(const RangeSet& other);
  void remove(Range range);
  void remove(const RangeSet& other);

  /// Takes the n smallest numbers out of this set (all, when it holds fewer).
  RangeSet take(std::uint64_t n);

  /// The numbers at these positions, the smallest at 0. Positions beyond count() have none.
  RangeSet at(const RangeSet& places) const;

  std::uint64_t count() const;

  bool empty() const { return ranges_.empty(); }

  bool contains(std::uint64_t number) const;
  bool contains(const RangeSet& other) const;
  bool intersects(const RangeSet& other) const;

  const std::vector<Range>& ranges() const { return ranges_; }

  /// Adopts ranges from outside; false (and unchanged) unless they are sorted, disjoint, non-adjacent and
  /// non-empty.
  bool adopt(std::vector<Range> ranges);

  bool operator==(const RangeSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

/// "0-31,40" for messages and logs.
std::string to_string(const RangeSet& set);

}  // namespace tw
