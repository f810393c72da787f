// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tw::launch {

/// Counts processes that the kernel has killed for memory: `oom_kill` of this process's control group
/// (memory.events, or memory.oom_control of version 1), else of the machine (vmstat).
class MemoryKills {
 public:
  /// root: in front of /proc and /sys, for tests. Those before are not counted.
  explicit MemoryKills(std::string root = "");

  /// The kernel has killed one more than there were takes.
  bool take();

 private:
  std::uint64_t count() const;

  std::string root_;
  std::uint64_t taken_;
};

}  // namespace tw::launch
