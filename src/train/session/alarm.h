// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "world/clock.h"

namespace tw::train {

/// One timer that may be set to an earlier time while it runs. A clock cannot cancel a call: an earlier one
/// still comes, but does not ring. Loop thread only.
class Alarm {
 public:
  /// The clock outlives it. ring: may set it again.
  Alarm(world::Clock& clock, std::function<void()> ring);

  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Rings at this time, or at the earlier one to which it is set already.
  void set_by(Instant when);

 private:
  void come(std::uint64_t call);

  world::Clock& clock_;
  std::function<void()> ring_;
  Instant at_ = kNever;
  std::uint64_t latest_ = 0;                               ///< number of the call that rings
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // owners: this; calls hold it weakly
};

}  // namespace tw::train
