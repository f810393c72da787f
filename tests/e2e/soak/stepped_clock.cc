// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/stepped_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

namespace tw::soak {

SteppedClock::SteppedClock(std::string file) : file_(std::move(file)) {
  const int opened = open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  TW_CHECK(opened >= 0 && ftruncate(opened, sizeof(ClockShift)) == 0);
  void* const mapped = mmap(nullptr, sizeof(ClockShift), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  close(opened);
  TW_CHECK(mapped != MAP_FAILED);
  shift_ = static_cast<ClockShift*>(mapped);
}

SteppedClock::~SteppedClock() { munmap(shift_, sizeof(ClockShift)); }

std::vector<std::string> SteppedClock::enter() const {
  if (!kCanStep) return {};
  return {"/usr/bin/env", "LD_PRELOAD=" TW_CLOCK_SHIFT, "TW_CLOCK_SHIFT=" + file_};
}

}  // namespace tw::soak
