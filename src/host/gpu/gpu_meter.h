// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/gpu/nvml.h"

namespace tw::host {

/// What an NVIDIA GPU does. A thread of its own asks NVML once a second, for a call may take longer than
/// others may wait.
class GpuMeter {
 public:
  /// uuid: as Nvml::find takes it. library: for tests.
  explicit GpuMeter(const std::string& uuid, const std::string& library = kNvml);
  /// Leaves a thread behind that is inside of a call: a driver that hangs keeps nobody.
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  /// busy: in the mean since the last call. Empty: nothing was measured since. Any thread.
  std::optional<GpuUse> take();

  /// Why nothing is measured, once; else empty. Any thread.
  std::string take_failure();

 private:
  class Found;

  std::shared_ptr<Found> found_;  // owners: this object, and its thread
};

}  // namespace tw::host
