// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "swarm/swarm.h"
#include "train/run/run_facts.h"
#include "train/session/departure.h"
#include "train/session/meters/counted_network.h"
#include "train/session/meters/counted_time.h"
#include "train/session/session_options.h"
#include "train/session/waits.h"
#include "train/session/worker.h"

namespace tw::train {

/// What all objects of a session share: the doors that it uses all the time, the decisions (Swarm), the queue
/// to the learner (Worker), its waits, and its stage (Departure). Session owns it, and it outlives the
/// others.
struct Core {
  /// Calls to the session, on the loop thread.
  struct Calls {
    std::function<void()> then;  ///< a job is done
    std::function<void()> back;  ///< the compute thread was away
    std::function<void()> ends;  ///< Departure
  };

  Core(const Doors& doors, SessionOptions of_session, std::unique_ptr<Learner> learner,
       SessionObserver* sees_decisions, const Calls& calls);

  wire::Member self() const { return {options.self, address, options.incarnation, options.site}; }

  /// The vector as rounds average it.
  const average::Fragments& fragments() const { return worker.size().fragments; }

  /// The last one of the run, as its records count.
  Round last_round() const { return options.run.rounds - std::min(options.run.rounds, begun); }

  /// The state that this peer has now is of a run that goes on from so many rounds of one before.
  void goes_on_from(Round rounds);

  /// To stores, so far.
  std::uint64_t written_bytes() const;

  void refuse(event::Cause cause, std::optional<PeerId> peer, std::string why);

  CountedTime clock;
  CountedNetwork network;
  StampedEvents events;
  const std::function<world::StoreUses()> stores;  ///< Doors::stores
  const SessionOptions options;
  SessionObserver* const observer;  ///< null: none
  Waits waits;
  Worker worker;
  const RunFacts facts;
  std::string unasked;        ///< Meeting::unasked, until it can be read
  Round begun = 0;            ///< rounds that count for RunOptions::rounds, and not in records
  Round told_last_round = 0;  ///< last_round() as the start event has it
  swarm::Swarm swarm;
  Departure departure;
  std::string address;                    ///< at which others reach this peer; empty until start()
  Round round = 0;                        ///< under way here; 0: none
  std::uint64_t written_before_copy = 0;  ///< written_bytes() when the copy of a checkpoint began
};

/// For the log: the bandwidth of this peer, where it is known.
event::Bandwidth bandwidth_facts(const wire::Bandwidth& bandwidth);

}  // namespace tw::train
