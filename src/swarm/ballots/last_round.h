// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/time.h"
#include "swarm/straggler_policy.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Memory of a peer for the next time it leads: recent averaging time, from the first plan of a round to its
/// commit, and the shares of the last round. A value; one thread.
class LastRound {
 public:
  /// A plan came; the first one of a round counts.
  void called(Instant now) {
    if (called_at_ == kNever) called_at_ = now;
  }

  /// The present round takes much longer than its plan's expected time.
  bool is_overdue(Instant now, Duration expected_of_plan) const {
    return called_at_ != kNever && now - called_at_ > overdue_after(expected_of_plan);
  }

  /// This process was stopped for `time`, which counts as no peer's delay.
  void stood_still(Duration time) {
    if (called_at_ != kNever) called_at_ += time;
  }

  /// The round was decided with these shares.
  void decided(Instant now, std::vector<wire::Share> shares) {
    shares_ = std::move(shares);
    if (called_at_ == kNever) return;
    const Duration took = now - called_at_;
    recent_.push_back(took);
    if (recent_.size() > kRecent) recent_.pop_front();
    expected_ = is_measured_ ? (3 * expected_ + took) / 4 : took;
    is_measured_ = true;
  }

  /// The round begins without a plan.
  void begin_round() { called_at_ = kNever; }

  Duration expected() const { return expected_; }

  /// The shortest of the last rounds, which no stall made longer; 0: none was averaged.
  Duration shortest() const { return recent_.empty() ? Duration{} : *std::ranges::min_element(recent_); }

  const std::vector<wire::Share>& shares() const { return shares_; }

 private:
  static constexpr std::size_t kRecent = 4;  // rounds

  Instant called_at_ = kNever;
  Duration expected_ = std::chrono::seconds(10);  // before any round was averaged
  bool is_measured_ = false;
  std::deque<Duration> recent_;
  std::vector<wire::Share> shares_;
};

}  // namespace tw::swarm
