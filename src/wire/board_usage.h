// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

/// What a peer uses, as statuses and boards have it.
namespace tw::wire {

/// Resources used by a peer's processes.
struct BoardUsage {
  double hours = 0;
  double cpu_s = 0;
  std::uint64_t peak_memory = 0;  ///< bytes
  std::uint64_t bytes_sent = 0, bytes_received = 0;

  static void fields(auto& self, auto&& field) {
    field("hours", self.hours);
    field("cpu_s", self.cpu_s);
    field("peak_memory", self.peak_memory);
    field("bytes_sent", self.bytes_sent);
    field("bytes_received", self.bytes_received);
  }

  bool operator==(const BoardUsage&) const = default;
};

/// A peer's GPU, as its driver counts.
struct BoardGpu {
  std::optional<double> busy;                  ///< share of the time lately, 0 to 1; empty: not counted
  std::uint64_t memory = 0, memory_total = 0;  ///< bytes

  static void fields(auto& self, auto&& field) {
    field("busy", self.busy);
    field("memory", self.memory);
    field("memory_total", self.memory_total);
  }

  bool operator==(const BoardGpu&) const = default;
};

}  // namespace tw::wire
