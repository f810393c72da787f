// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "sync/checkpoint.h"
#include "wire/checkpoint_messages.h"

namespace tw::train {

/// What the linked peers hold in their own checkpoint folders, as far as they said. A founder that waits for
/// a peer with the state asks them, so that the newest checkpoint goes on, whoever holds it
/// (docs/protocol.md). It only decides. Times are those of CountedTime.
class HeldElsewhere {
 public:
  /// A peer that answers nothing, or was told to resume and does not, counts for so long.
  explicit HeldElsewhere(Duration patience) : patience_(patience) {}

  /// A peer that is still busy with its beginning does not answer.
  static constexpr Duration kAskAgain = std::chrono::seconds(2);

  /// The linked peers to ask now: those that have not answered. Forgets peers that are not linked.
  std::vector<PeerId> due(Instant now, const std::vector<PeerId>& linked);

  void on_answer(PeerId from, const wire::HeldCheckpoint& held);

  /// The answer of a linked peer may still come.
  bool awaits_answers(Instant now) const;

  struct Heir {
    PeerId peer;
    wire::Record record;
    bool is_due = false;  ///< it is to be told now, for the first time or once more
  };

  /// The peer that is to resume: its checkpoint is newer than `own` (nothing: none) and than those of all
  /// others. Nothing: no peer has such a one.
  std::optional<Heir> heir(Instant now, const sync::LoadedCheckpoint* own);

  /// The peer that heir() gave last.
  std::optional<PeerId> awaited() const { return awaited_; }

 private:
  struct Known {
    Instant asked_since{};
    Instant asked_at{};
    bool answered = false;
    std::optional<sync::LoadedCheckpoint> held;  ///< without its bytes
    Instant told_since = kNever;                 ///< to resume
    Instant told_at{};
  };

  bool has_failed(Instant now, const Known& known) const;

  Duration patience_;
  std::map<PeerId, Known> peers_;
  std::optional<PeerId> awaited_;
};

}  // namespace tw::train
