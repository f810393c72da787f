// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace tw::sync {

/// Counts how often a peer that takes the state and means of others lost ground. If its bandwidth is less
/// than a mean per round, it would never catch up: it has to tell the others (CatchingUp).
class Ground {
 public:
  /// A state or a mean brought this peer to round `here`, while the others have reached round `others`.
  void come_to(Round here, Round others) {
    const Round behind = others > here ? others - here : 0;
    if (behind_ && behind >= *behind_) ++lost_;
    behind_ = behind;
  }

  /// The means after this round are gone, so that it starts with the state again. That counts as ground lost,
  /// with two exceptions. At the very beginning its record may be of another history; at the same round again
  /// no peer has anything newer yet.
  void start_over(Round here) {
    if (behind_ && here != started_over_at_) ++lost_;
    started_over_at_ = here;
    behind_.reset();
  }

  /// It takes the state of others from now on. It lost ground, too, if it stood at the head before and did
  /// not become a member.
  void step_back() {
    if (stood_at_head_) ++lost_;
    stood_at_head_ = false;
    behind_.reset();
  }

  void stand_at_head() { stood_at_head_ = true; }

  /// It is a member: starts counting anew.
  void hold() { *this = {}; }

  /// Number of times that it lost ground.
  std::uint32_t lost() const { return lost_; }

 private:
  std::uint32_t lost_ = 0;
  std::optional<Round> behind_;           ///< at the last round that it came to
  std::optional<Round> started_over_at_;  ///< last
  bool stood_at_head_ = false;
};

}  // namespace tw::sync
