// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace tw::host {

/// Flow control of the bulk messages of one link in one direction, over all its streams: the receiver grants
/// how many bytes may be sent since the link was opened, and grants more as messages are consumed. A stopped
/// receiver is sent no more than a window. Both ends begin with kFirstWindow.
inline constexpr std::uint64_t kFirstWindow = 16 << 20;

/// The sender's account. One message may go beyond the limit.
class Credit {
 public:
  bool may_send() const { return sent_ < limit_; }

  void on_sent(std::uint64_t bytes) { sent_ += bytes; }

  void on_grant(std::uint64_t limit) { limit_ = std::max(limit_, limit); }

 private:
  std::uint64_t sent_ = 0;
  std::uint64_t limit_ = kFirstWindow;
};

/// The receiver's account. The window is four times the bytes consumed in a round trip, so that streams whose
/// rate doubles each round trip never wait for a grant.
class Allowance {
 public:
  static constexpr std::uint64_t kMostWindow = 256 << 20;

  explicit Allowance(Duration round_trip) : period_(std::max(round_trip, kShortestPeriod)) {}

  /// A message of this size arrived and was consumed. Returns the new grant, if any.
  std::optional<std::uint64_t> on_consumed(Instant now, std::uint64_t bytes);

  std::uint64_t window() const { return window_; }

 private:
  static constexpr Duration kShortestPeriod = std::chrono::milliseconds(5);

  Duration period_;
  Instant begun_{};              ///< of the present period
  std::uint64_t in_period_ = 0;  ///< bytes
  std::uint64_t window_ = kFirstWindow;
  std::uint64_t consumed_ = 0;
  std::uint64_t granted_ = kFirstWindow;
};

}  // namespace tw::host
