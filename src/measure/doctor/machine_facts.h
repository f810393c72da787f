// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/gpu/nvml.h"

/// Measurements of the machine that this process runs on. They block, for a second at most, unless they say
/// otherwise.
namespace tw::measure {

struct CpuFacts {
  double threads = 0;               ///< that this process may use
  double got = 0;                   ///< CPU seconds in a second of as many busy threads
  std::optional<double> quota;      ///< CPUs that its cgroup may use
  double throttled = 0;             ///< share of the cgroup's periods in which it was stopped, meanwhile
  double steal = 0;                 ///< share of time that the hypervisor gave to others, meanwhile
  std::optional<double> frequency;  ///< of the fastest core, share of its maximum, meanwhile
};

/// All cores are busy for half a second.
CpuFacts measure_cpu();

struct MemoryFacts {
  std::uint64_t total = 0;             ///< bytes of the machine
  std::uint64_t available = 0;         ///< without swapping
  std::optional<std::uint64_t> limit;  ///< of the cgroup
  std::uint64_t used = 0;              ///< of it
  /// What this process may map (ulimit -v); nothing: no limit.
  std::optional<std::uint64_t> mapped_limit;
};

MemoryFacts measure_memory();

struct FileLimit {
  std::uint64_t soft = 0, hard = 0;
};

FileLimit open_file_limit();

struct ClockFacts {
  bool synchronised = false;  ///< by NTP or the like, as the kernel knows
  double error_s = 0;         ///< at most, as the kernel thinks
};

ClockFacts ask_clock();

struct DiskFacts {
  double bytes_per_s = 0;   ///< write, fsync and rename of one file
  std::uint64_t bytes = 0;  ///< that were written
  std::uint64_t free = 0;
};

/// Folders that a trial makes: those above a path that are not there yet. In the end they are removed again,
/// as far as they are empty.
class FoldersOnTrial {
 public:
  explicit FoldersOnTrial(const std::string& path);
  ~FoldersOnTrial();
  FoldersOnTrial(const FoldersOnTrial&) = delete;
  FoldersOnTrial& operator=(const FoldersOnTrial&) = delete;

 private:
  std::vector<std::string> missing_;  ///< the innermost first
};

/// In a file of its own in this folder, which is removed again, as is a folder that was not there. Blocks as
/// long as the disk takes.
Result<DiskFacts> measure_disk(const std::string& folder, std::uint64_t bytes);

struct GpuFacts {
  bool built_in = false;  ///< a graphics or compute card of NVIDIA is on the PCI bus
  std::vector<host::Gpu> gpus;
  std::string failure;                 ///< why the driver names none
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES
};

/// Blocks for 5 s where the driver hangs.
GpuFacts look_for_gpus();

/// Numbers of all interfaces that are up, without loopback and link-local ones.
std::vector<std::string> interface_addresses();

}  // namespace tw::measure
