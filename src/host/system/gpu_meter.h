// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tw::host {

struct GpuUse {
  std::optional<double> busy{};  ///< share of the time, 0 to 1; empty: the driver does not count it (MIG)
  std::uint64_t memory = 0;      ///< bytes, of all processes
  std::uint64_t memory_total = 0;
};

/// What an NVIDIA GPU does. A thread of its own asks the driver's library (NVML) once a second, for a call
/// may take longer than others may wait.
class GpuMeter {
 public:
  /// uuid: of a card, or of a slice of one (MIG), without the "GPU-" or "MIG-" before it. library: for tests.
  explicit GpuMeter(const std::string& uuid, const std::string& library = "libnvidia-ml.so.1");
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
