// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "swarm/wait.h"
#include "sync/image.h"

namespace tw::train {

/// The wait of a peer that has nobody to join in a run that had begun before it started: the others may live,
/// and reach it once they notice that somebody answers at its address. Only after the patience of the run
/// does it go on alone, from what it has. Times are those of CountedTime.
class ReturnWait {
 public:
  enum class Stage {
    off,       ///< nothing says that the run had begun, or others were found
    waiting,   ///< for the others
    resuming,  ///< alone: the checkpoint is being restored
  };

  Stage stage() const { return stage_; }

  /// found: what says that the run had begun.
  void begin(Instant now, Duration patience, std::string found);

  /// What it will go on from when nobody comes.
  void keep(sync::StateImage checkpoint) { checkpoint_ = std::move(checkpoint); }

  /// Its checkpoints cannot be used: when nobody comes, this is why it ends.
  void keep_trouble(std::string why) { trouble_ = std::move(why); }

  bool is_over(Instant now) const { return stage_ == Stage::waiting && now - since_ >= patience_; }

  /// What is left when nobody came.
  struct Rest {
    std::optional<sync::StateImage> checkpoint;
    std::string trouble;
  };

  /// Ends the wait.
  Rest give_up();

  /// Not while it waits.
  void resume() { enter(Stage::resuming); }

  /// Others were found, or the checkpoint is restored.
  void end();

  /// Nothing unless it waits.
  swarm::Wait waiting(Instant now) const;

 private:
  void enter(Stage next);

  Stage stage_ = Stage::off;
  Instant since_{};
  Duration patience_{};
  std::string found_;
  std::optional<sync::StateImage> checkpoint_;
  std::string trouble_;
};

}  // namespace tw::train
