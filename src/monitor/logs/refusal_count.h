// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "world/events.h"

namespace tw::monitor {

/// Refusals on their way to a log that nobody may fill with them: the first of a cause is told at once, those
/// after it are counted and told together every 10 s, with the last one of them as the example. A refusal
/// without a cause is told each time. Each event that is told of a cause has the number "count".
///
/// A step machine. What it holds and tells is bounded: one event for each cause, with words of 400 bytes.
class RefusalCount {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(10);

  /// What to tell at once, if anything.
  std::optional<world::Event> take(const world::Event& refusal);

  /// What to tell now. Its cost is small: call it often.
  std::vector<world::Event> due(Instant now);

  /// All that was counted and not told: nothing comes after it.
  std::vector<world::Event> rest();

 private:
  struct Counted {
    Instant told_at{};
    std::uint64_t count = 0;  // since then
    world::Event last;
  };

  std::array<std::optional<Counted>, world::kCauseNames.size()> counted_;
};

}  // namespace tw::monitor
