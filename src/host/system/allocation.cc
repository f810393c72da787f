// SPDX-License-Identifier: Apache-2.0
#include "host/system/allocation.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

namespace tw::host {
namespace {

bool environment_chooses() {
  constexpr std::array kVariables{"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX",
                                  "GLIBC_TUNABLES"};
  return std::ranges::any_of(kVariables, [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

void keep_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  if (environment_chooses()) return;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_ARENA_MAX, 1);  // those of other threads than the first give memory back whatever the threshold
#endif
}

void return_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  malloc_trim(0);
#endif
}

}  // namespace tw::host
