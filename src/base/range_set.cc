// SPDX-License-Identifier: Apache-2.0
#include "base/range_set.h"

#include <algorithm>

namespace tw {

void RangeSet::add(Range range) {
  if (range.count == 0) return;
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range,
                                [](const Range& a, const Range& b) { return a.end() < b.first; });
  auto last = first;
  std::uint64_t begin = range.first;
  std::uint64_t end = range.end();
  while (last != ranges_.end() && last->first <= end) {
    begin = std::min(begin, last->first);
    end = std::max(end, last->end());
    ++last;
  }
  first = ranges_.erase(first, last);
  ranges_.insert(first, Range{begin, end - begin});
}

void RangeSet::add(const RangeSet& other) {
  for (const Range& range : other.ranges_) add(range);
}

void RangeSet::remove(Range range) {
  if (range.count == 0) return;
  std::vector<Range> kept;
  kept.reserve(ranges_.size() + 1);
  for (const Range& r : ranges_) {
    const std::uint64_t left_end = std::min(r.end(), range.first);
    if (r.first < left_end) kept.push_back({r.first, left_end - r.first});
    const std::uint64_t right_begin = std::max(r.first, range.end());
    if (right_begin < r.end()) kept.push_back({right_begin, r.end() - right_begin});
  }
  ranges_ = std::move(kept);
}

void RangeSet::remove(const RangeSet& other) {
  for (const Range& range : other.ranges_) remove(range);
}

RangeSet RangeSet::take(std::uint64_t n) {
  RangeSet taken;
  while (n > 0 && !ranges_.empty()) {
    const Range front{ranges_.front().first, std::min(n, ranges_.front().count)};
    taken.add(front);
    remove(front);
    n -= front.count;
  }
  return taken;
}

RangeSet RangeSet::at(const RangeSet& places) const {
  RangeSet numbers;
  std::uint64_t place = 0;  // of the first number of r
  auto wanted = places.ranges_.begin();
  for (const Range& r : ranges_) {
    const std::uint64_t end = place + r.count;
    while (wanted != places.ranges_.end() && wanted->first < end) {
      const std::uint64_t first = std::max(wanted->first, place);
      const std::uint64_t last = std::min(wanted->end(), end);
      numbers.ranges_.push_back({r.first + (first - place), last - first});
      if (wanted->end() > end) break;
      ++wanted;
    }
    place = end;
  }
  return numbers;
}

std::uint64_t RangeSet::count() const {
  std::uint64_t n = 0;
  for (const Range& r : ranges_) n += r.count;
  return n;
}

bool RangeSet::contains(std::uint64_t number) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& r) { return r.first <= number && number < r.end(); });
}

bool RangeSet::contains(const RangeSet& other) const {
  RangeSet rest = other;
  rest.remove(*this);
  return rest.empty();
}

bool RangeSet::intersects(const RangeSet& other) const {
  RangeSet rest = other;
  rest.remove(*this);
  return rest.count() != other.count();
}

bool RangeSet::adopt(std::vector<Range> ranges) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& r = ranges[i];
    const bool apart = i == 0 || r.first > end;
    if (!apart || r.count == 0 || r.first > UINT64_MAX - r.count) return false;
    end = r.end();
  }
  ranges_ = std::move(ranges);
  return true;
}

std::string to_string(const RangeSet& set) {
  std::string text;
  for (const Range& r : set.ranges()) {
    if (!text.empty()) text += ',';
    text += std::to_string(r.first);
    if (r.count > 1) text += '-' + std::to_string(r.end() - 1);
  }
  return text;
}

}  // namespace tw
