// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "swarm/wait.h"
#include "train/session/rounds.h"
#include "train/session/search/linking.h"
#include "train/session/search/resumption.h"

namespace tw::train {

/// For whom, or for what work of its own, a session waits at the moment. It only looks. Loop thread only.
class WaitReason {
 public:
  /// All outlive it.
  WaitReason(Core& core, const Linking& linking, const Recovery& recovery, const Resumption& resumption,
             const Rounds& rounds)
      : core_(core), linking_(linking), recovery_(recovery), resumption_(resumption), rounds_(rounds) {}

  /// After the end: the jobs with which the end of the process waits, as far as it does so for saving.
  swarm::Wait current() const;

  /// To be called with every tick: reports a wait that lasts (Waits::watch).
  void watch();

 private:
  swarm::Wait own_work() const;
  swarm::Wait copying() const;
  swarm::Wait wait_for_state() const;
  swarm::Wait wait_for_segments() const;
  swarm::Wait with_addresses(swarm::Wait wait) const;

  Core& core_;
  const Linking& linking_;
  const Recovery& recovery_;
  const Resumption& resumption_;
  const Rounds& rounds_;
};

}  // namespace tw::train
