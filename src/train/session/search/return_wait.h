// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "swarm/wait.h"
#include "sync/checkpoint.h"

namespace tw::train {

/// The wait of a peer without addresses to join, in a run that had begun before: the other peers may live,
/// and dial its address again. Only after the patience of the run it goes on alone, from its checkpoint, or a
/// peer that waits with it goes on from a newer one (HeldElsewhere).
/// Times are those of CountedTime.
class ReturnWait {
 public:
  enum class Stage {
    off,       ///< no sign that the run had begun, or others were found
    waiting,   ///< for the others
    resuming,  ///< alone: the checkpoint is being restored
  };

  Stage stage() const { return stage_; }

  /// found: the sign that the run had begun.
  void begin(Instant now, Duration patience, std::string found);

  /// The checkpoint to resume from if no peer comes.
  void keep(sync::LoadedCheckpoint checkpoint) { checkpoint_ = std::move(checkpoint); }

  /// Its checkpoints cannot be used: the reason of the end if no peer comes.
  void keep_trouble(std::string why) { trouble_ = std::move(why); }

  /// Nothing: none was kept.
  const sync::LoadedCheckpoint* checkpoint() const { return checkpoint_ ? &*checkpoint_ : nullptr; }

  bool is_over(Instant now) const { return stage_ == Stage::waiting && now - since_ >= patience_; }

  /// What remains if no peer came.
  struct Rest {
    std::optional<sync::LoadedCheckpoint> checkpoint;
    std::string trouble;
  };

  /// Ends the wait.
  Rest give_up();

  /// Not while it waits.
  void resume() { enter(Stage::resuming); }

  /// Others were found, or the checkpoint is restored.
  void end();

  /// Empty unless it waits.
  swarm::Wait waiting(Instant now) const;

 private:
  void enter(Stage next);

  Stage stage_ = Stage::off;
  Instant since_{};
  Duration patience_{};
  std::string found_;
  std::optional<sync::LoadedCheckpoint> checkpoint_;
  std::string trouble_;
};

}  // namespace tw::train
