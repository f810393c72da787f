// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "train/session/checkpoints.h"
#include "train/session/core.h"

namespace tw::train {

/// When this peer writes and copies checkpoints, and what it reports of them. Loop thread only.
///
/// The checkpoint of the last round and its copy are jobs that the end of the session waits for (Departure).
class Saving {
 public:
  /// All outlive it. then: a job is done.
  Saving(Core& core, const Doors& doors, std::function<void()> then);

  Checkpoints& checkpoints() { return checkpoints_; }

  /// The record's update was given to the Worker.
  void after_round(const wire::Record& record);

  /// The last peer to leave takes the state with it: where it has no checkpoint of it, one is made, and this
  /// peer ends after that, while it is copied. True: so it is here. Only with the state after the head.
  bool saves_before_it_leaves(const std::string& why);

 private:
  void save(const wire::Record& record);
  void copy();
  void finish_when_copied();
  template <class Kind>  // event::Checkpoint or event::Copy
  void report(const wire::Record& record, const Status& saved, Duration took);
  bool is_last_to_leave() const;
  bool others_copy() const;

  Core& core_;
  Checkpoints checkpoints_;
  int awaits_copy_ = 0;       ///< last jobs that end with it
  bool leaves_last_ = false;  ///< known when it leaves
};

}  // namespace tw::train
