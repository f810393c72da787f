// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "average/fragments.h"
#include "average/reduction/gradient_sum.h"
#include "train/run/run.h"
#include "wire/record.h"

namespace tw::train {

/// What rounding took from this peer's contributions, and later ones carry (average/reduction/residual.h). To
/// add up the losses of a round takes a pass over its fragment, and nothing needs them before that fragment's
/// next turn: they are owed first, and settled by whichever thread comes to it.
class ErrorFeedback {
 public:
  /// Residuals of zero, or none where the run has no error feedback. The fragments outlive it.
  ErrorFeedback(const RunOptions& run, const average::Fragments& fragments, std::size_t threads);
  ErrorFeedback(const ErrorFeedback&) = delete;
  ErrorFeedback& operator=(const ErrorFeedback&) = delete;
  ~ErrorFeedback() = default;

  /// The slot whose contribution carries the residual.
  static constexpr std::uint32_t kCarrier = 0;

  bool is_on() const { return !residual_.empty(); }

  /// A contribution of this process that counts, and the sum that it had.
  struct Counted {
    wire::Contribution of;
    average::GradientSum sum;
  };

  /// owe() of this round will come: until it is settled, lacks() says so. Loop thread.
  void announce(Round round);

  /// Takes over the losses of a committed round. Compute thread.
  void owe(Round round, std::vector<Counted> own);

  /// Adds up what is owed of rounds up to this one. Returns when it is done, by this thread or another one.
  /// Any thread.
  void settle(Round until);

  /// Adds up all that is owed. Any thread.
  void settle() { settle(kAll); }

  /// The residuals are zero, and what is owed is forgotten. Compute thread.
  void drop();

  /// A contribution of this round lacks losses of its fragment's last turn. Any thread; false follows upon
  /// the last write to them.
  bool lacks(Round round) const;

  /// The last round before this one that averaged its fragment; 0: none.
  Round last_turn(Round round) const;

  /// The residual that the contribution in this slot has, of the round's fragment: valid and unchanged until
  /// losses of that fragment are settled or dropped. Empty in other slots than the carrier's.
  std::span<const float> carried(Round round, std::uint32_t slot) const;

 private:
  static constexpr Round kAll = ~Round{0};

  struct Owed {
    Round round = 0;
    std::vector<Counted> own;
  };

  std::optional<Owed> take(Round until);
  void give_back();
  std::span<float> residual(Round round);
  void add(const Owed& owed);

  const RunOptions run_;
  const average::Fragments& fragments_;
  const std::size_t threads_;
  std::vector<float> residual_;  ///< empty: no error feedback
  mutable std::mutex mutex_;     // of what follows
  std::condition_variable settled_;
  std::set<Round> unsettled_;     // announced
  std::deque<Owed> owed_;         // in the order of their rounds
  std::optional<Round> in_hand_;  // a thread adds up its losses, outside of the mutex
};

}  // namespace tw::train
