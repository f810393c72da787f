// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace tw::wan {

/// Load of the box in one second.
struct BoxSecond {
  std::uint64_t packets = 0;  ///< handed over; one with TSO counts as one
  std::uint64_t late = 0;     ///< of these, later than kLate
  Duration worst_lag{};       ///< between when a packet was due and when it was handed over
  double cpu_share = 0;       ///< of one core
  std::uint64_t unread = 0;   ///< packets that hosts sent and the box did not read in time
};

/// Judges whether the box kept up, second by second. Nothing measured in an overloaded second means anything.
class Load {
 public:
  static constexpr Duration kLate = std::chrono::milliseconds(2);
  static constexpr double kMostLateShare = 0.01;
  static constexpr std::uint64_t kFewestLate = 10;  ///< fewer say nothing about the box
  static constexpr double kMostCpuShare = 0.9;

  void delivered(Duration lag);

  /// Ends the second; cpu: that the box used since it began, in wall time `elapsed`.
  void close(Duration cpu, Duration elapsed, std::uint64_t unread);

  const BoxSecond& last() const { return last_; }

  std::uint64_t overloaded_seconds() const { return overloaded_seconds_; }

  /// The criterion that the last overloaded second broke; empty: there was none.
  const std::string& why() const { return why_; }

  Duration worst_lag() const { return worst_lag_; }

  double worst_cpu_share() const { return worst_cpu_share_; }

 private:
  BoxSecond now_, last_;
  std::uint64_t overloaded_seconds_ = 0;
  std::string why_;
  Duration worst_lag_{};
  double worst_cpu_share_ = 0;
};

}  // namespace tw::wan
