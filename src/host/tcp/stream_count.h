// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace tw::host {

/// How many data streams a peer wants to one other peer. A stream carries at most its window in a round trip,
/// so the first guess is the number that 1.5 Gbit/s need at this round trip, or an equal part of 6 Gbit/s if
/// more than four links are far; while the streams together are the bottleneck, twice as many are tried, and
/// kept when they carry more. A pure step machine.
class StreamCount {
 public:
  static constexpr int kMost = 64;

  /// Limit for the sum of all links that are not within a site. Where they share one uplink, each link that
  /// adds streams takes from the others, so all would end with the maximum, and windows of a few packets.
  static constexpr int kMostTogether = 192;

  /// Within one site a window is no limit, and a second stream has only costs.
  static constexpr Duration kNear = std::chrono::milliseconds(2);

  /// Most bytes under way on a stream with the stock buffers of Linux (tcp_wmem 4 MiB, a part of which is
  /// bookkeeping): 2.4 to 3.1 MB between cloud regions (Erben et al., VLDB 2024, tables 3 and 4).
  static constexpr double kWindowBytes = 2.6e6;

  explicit StreamCount(Duration round_trip, int most = kMost);

  int wanted() const { return wanted_; }

  bool is_far() const { return round_trip_ >= kNear; }

  /// Number of far links of this peer, this one included if it is far.
  void share_with(int far_links);

  /// The first measurement may include queues.
  void on_round_trip(Duration least);

  /// Bytes sent during this time, while more was waiting all the time than the streams took.
  void on_saturated(Duration time, std::uint64_t bytes);

 private:
  void judge(double bytes_per_s);
  void raise();

  Duration round_trip_;
  int most_;
  int wanted_ = 1;
  int together_ = kMostTogether;  ///< this link's part
  int far_links_ = 1;
  bool is_guess_ = true;
  int before_ = 0;       ///< while more are tried; 0: none are
  double best_ = 0;      ///< bytes per second with those before
  Duration warm_up_{};   ///< time left before the measurement begins
  Duration measured_{};  ///< saturated time of the present measurement
  double bytes_ = 0;     ///< of the present measurement
  Duration pause_{};     ///< time left before the next attempt
};

}  // namespace tw::host
