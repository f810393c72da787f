// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "train/session/checkpoints.h"
#include "train/session/core.h"
#include "train/session/recovery.h"
#include "train/session/search/held_elsewhere.h"

namespace tw::train {

/// What is left of the run from before this process: its checkpoints, those of the peers that wait with it,
/// and what to do where neither is found. Loop thread only.
///
/// A founder begins a history only while no other peer was found (PeerState::fresh), and resumes only
/// after the others had the patience of the run to come, if the run had begun before.
class Resumption {
 public:
  /// All outlive it.
  Resumption(Core& core, Checkpoints& checkpoints, Recovery& recovery);

  /// This peer founds: it resumes, waits for others, or begins from the seed.
  void begin();

  void tick();

  /// This peer joins, and gives the search up. The run may be over: it ends with that if it has the last
  /// checkpoint, else it fails so.
  void found_nobody(std::string why, Ending ending);

  /// The others ended the run, and its state never came here. why: their word.
  void came_too_late(const std::string& why);

  /// False, without effect, for a message that is not about checkpoints.
  bool on_message(PeerId from, const wire::Message& message);

  /// The peer that is to resume, told by this one.
  std::optional<PeerId> awaited() const { return held_.awaited(); }

  /// The last record of a run that was complete before this peer came, once its parameters are taken.
  const std::optional<wire::Record>& end() const { return end_; }

 private:
  std::string lost_text() const;
  std::string unasked_text() const;
  Ending ending_with(const std::string& trouble) const;
  void set_checkpoints_aside();
  void found_checkpoints(Checkpoints::Loaded& loaded);
  void found_no_checkpoint();
  void take_checkpoint(sync::LoadedCheckpoint loaded);
  bool goes_on_after(const sync::LoadedCheckpoint& loaded) const;
  bool ends_with(const sync::LoadedCheckpoint& loaded) const;
  bool begins_again_after(const sync::LoadedCheckpoint& loaded) const;
  void look_for_the_end(std::function<bool(const sync::LoadedCheckpoint&)> is_end,
                        std::function<void()> otherwise);
  void stand_at_the_end(sync::LoadedCheckpoint loaded);
  void begin_again(Round round);
  void wait_for_others(std::string found);
  void ask_for_checkpoints(Instant now);
  bool lets_another_resume(Instant now);
  void answer(PeerId from, const wire::AskCheckpoint& ask);
  void resume(sync::StateImage checkpoint);

  Core& core_;
  Checkpoints& checkpoints_;
  Recovery& recovery_;
  HeldElsewhere held_;  ///< by the linked peers
  std::optional<wire::Record> end_;
  bool stands_at_the_end_ = false;  ///< it takes these parameters
  bool has_no_checkpoint_ = false;  ///< it looked
};

}  // namespace tw::train
