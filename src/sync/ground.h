// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace tw::sync {

/// Whether a peer that takes the state and the means of others gains on them. Where its line carries less
/// than a mean in a round it never would: it has to tell them how often it lost ground (CatchingUp).
class Ground {
 public:
  /// A state or a mean brought it to this round, and the others are at that one by now.
  void come_to(Round here, Round others) {
    const Round behind = others > here ? others - here : 0;
    if (behind_ && behind >= *behind_) ++lost_;
    behind_ = behind;
  }

  /// What it needs after this round is not there any more, so that it has to start with the state again. (At
  /// the very beginning that is nobody's fault: what it has may be of another history. From the same round
  /// once more it is not either: nobody has anything newer yet.)
  void start_over(Round here) {
    if (behind_ && here != started_over_at_) ++lost_;
    started_over_at_ = here;
    behind_.reset();
  }

  /// It takes the state of others from now on. That it stood at the head before and did not become a member
  /// is ground lost, too.
  void step_back() {
    if (stood_at_head_) ++lost_;
    stood_at_head_ = false;
    behind_.reset();
  }

  void stand_at_head() { stood_at_head_ = true; }

  /// It is a member: all is as at the beginning.
  void hold() { *this = {}; }

  /// How often.
  std::uint32_t lost() const { return lost_; }

 private:
  std::uint32_t lost_ = 0;
  std::optional<Round> behind_;           ///< when it came to a round last
  std::optional<Round> started_over_at_;  ///< last
  bool stood_at_head_ = false;
};

}  // namespace tw::sync
