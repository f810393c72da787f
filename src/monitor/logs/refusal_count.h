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

/// Limits refusals in a log: the first of a cause is logged at once, later ones are counted and logged
/// together every 10 s, with the last one as the example. A refusal without a cause is logged each time. Each
/// logged event with a cause has the number "count".
///
/// A step machine. Its memory and output are bounded: one event for each cause, with words of 400 bytes.
class RefusalCount {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(10);

  /// The event to log at once, if any.
  std::optional<world::Event> take(const world::Event& refusal);

  /// The events to log now. Cheap: call it often.
  std::vector<world::Event> due(Instant now);

  /// All counted refusals that were not logged. Call it last.
  std::vector<world::Event> rest();

 private:
  struct Counted {
    Instant told_at{};
    std::uint64_t count = 0;  // since then
    world::Event last;
  };

  std::array<std::optional<Counted>, event::kCauseNames.size()> counted_;
};

}  // namespace tw::monitor
