// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

namespace tw::host {

/// User and system time of all threads of this process.
inline double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// The kernel's part of cpu_seconds.
inline double kernel_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_stime.tv_sec) + 1e-6 * static_cast<double>(used.ru_stime.tv_usec);
}

/// Peak resident memory of this process.
inline double peak_memory_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

}  // namespace tw::host
