// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tw::host {

/// NVIDIA's management library, which comes with the driver.
inline constexpr const char* kNvml = "libnvidia-ml.so.1";

struct GpuUse {
  std::optional<double> busy{};  ///< share of the time, 0 to 1; empty: the driver does not count it (MIG)
  std::uint64_t memory = 0;      ///< bytes, of all processes
  std::uint64_t memory_total = 0;
};

/// The functions of NVML that tradewind calls. The library stays loaded. A call takes milliseconds, and as
/// long as it likes where the driver hangs. Any thread.
class Nvml {
 public:
  using Device = void*;

  /// Errors say what is missing. library: for tests.
  static Result<Nvml> load(const std::string& library = kNvml);

  /// uuid: of a card, or of a slice of one (MIG), without the "GPU-" or "MIG-" before it.
  Result<Device> find(const std::string& uuid) const;

  /// All cards, in the driver's order.
  Result<std::vector<Device>> devices() const;

  /// "NVIDIA A100-SXM4-80GB"; "GPU" where the driver does not say.
  std::string name_of(Device device) const;

  /// Empty: the driver does not say how much memory there is.
  std::optional<GpuUse> use_of(Device device) const;

 private:
  struct Functions;

  // owners: this and its copies
  explicit Nvml(std::shared_ptr<const Functions> functions) : call_(std::move(functions)) {}

  std::shared_ptr<const Functions> call_;  // owners: this and its copies
};

struct Gpu {
  std::string name;
  GpuUse use;
};

/// All cards of this machine. Blocks for 5 s where the driver hangs; a thread stays behind then.
Result<std::vector<Gpu>> list_gpus(const std::string& library = kNvml);

}  // namespace tw::host
