// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "sim/process.h"
#include "world/clock.h"

namespace tw {

/// Virtual time as one process sees it.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(Process& process) : process_(process) {}

  Instant now() override { return process_.scheduler().now(); }

  std::int64_t unix_nanos() override { return now().time_since_epoch().count(); }

  void at(Instant when, std::function<void()> call) override { process_.at(when, std::move(call)); }

  void jump(Duration) {}

  void jump_wall(Duration) {}

 private:
  Process& process_;
};

}  // namespace tw
