// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"

namespace tw::host {

/// What tells this process from all others of the machine, for a WatchedProcess: "PID:START_TIME:PIDNS", its
/// number, field 22 of /proc/PID/stat, and the inode of its pid namespace. Only the number where /proc is not
/// mounted: then nobody can watch it.
std::string name_of_this_process();

/// Another process of this machine, until it is gone.
class WatchedProcess {
 public:
  /// name: what name_of_this_process() of it was. Nobody is watched where that is no such name, or one of
  /// another pid namespace.
  explicit WatchedProcess(const std::string& name);

  /// Its number, once, when it is gone: at the first call where it was before. One that has ended is gone,
  /// whether its parent has taken note of that or not. Looks once a second.
  std::optional<pid_t> take_end(Instant now);

 private:
  std::optional<pid_t> id_;
  std::uint64_t started_ = 0;
  Instant next_look_{};
};

}  // namespace tw::host
