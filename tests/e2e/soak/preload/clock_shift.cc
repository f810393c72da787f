// SPDX-License-Identifier: Apache-2.0
// clock_shift.so, loaded in front of libc (LD_PRELOAD): clock_gettime with what stepped_clock.h says added.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "e2e/soak/stepped_clock.h"

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

const tw::soak::ClockShift* map_shift() {
  const char* const path = std::getenv("TW_CLOCK_SHIFT");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(tw::soak::ClockShift), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<const tw::soak::ClockShift*>(mapped);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const tw::soak::ClockShift* const shift = map_shift();
  const long failed = syscall(SYS_clock_gettime, clock, time);
  if (failed != 0 || shift == nullptr || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
    return static_cast<int>(failed);
  const std::int64_t by = clock == CLOCK_MONOTONIC ? shift->monotonic_ns.load() : shift->wall_ns.load();
  const std::int64_t sum = time->tv_sec * kSecond + time->tv_nsec + by;
  time->tv_sec = sum / kSecond;
  time->tv_nsec = sum % kSecond;
  return 0;
}
