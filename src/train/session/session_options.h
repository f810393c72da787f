// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/rarely.h"
#include "swarm/wait.h"
#include "train/run/run.h"
#include "train/session/departure.h"
#include "wire/record.h"
#include "wire/status.h"
#include "world/clock.h"
#include "world/events.h"
#include "world/executor.h"
#include "world/files.h"
#include "world/network.h"
#include "world/store.h"

namespace tw::train {

/// The doors of one peer. All outlive the session.
struct Doors {
  world::Clock& clock;
  world::Network& network;
  world::Files& files;
  world::Executor& compute;
  world::Executor& disk;
  world::Executor& copier;  ///< of checkpoints, to other folders: may take long
  world::EventSink& events;
  /// Use of stores until now by files and events; empty: none.
  std::function<world::StoreUses()> stores{};
  std::function<void()> ended{};  ///< called once, when the session has ended: SessionView::ending
};

/// Whether the run had begun before this process started.
enum class Past {
  unknown,  ///< decided by a checkpoint of the run, if there is one
  begun,    ///< the run had begun: other peers may live (--rejoin, an event log of the run)
  over,     ///< no peer of the run can be reached any more
};

/// What a peer does that finds the checkpoint of a run that is complete.
enum class WhenComplete {
  ends,       ///< at once
  takes_end,  ///< its program gets the parameters first; one that joins looks for it where nobody answers
};

/// Where the peers of a run leave their addresses, for words alone.
struct Meeting {
  std::string place;    ///< empty: nowhere
  std::string unasked;  ///< why it could not be read before the start; empty: it was, or need not be
};

/// How vectors are averaged, whatever the run says.
struct AveragingOptions {
  std::uint64_t segment_length = 0;  ///< floats; 0: as is usual (average/reduction/geometry.h)
  /// Bandwidth is probed (average/bandwidth/probe.h) for vectors of at least this many bytes on the wire:
  /// shorter ones are fast at any bandwidth.
  std::uint64_t probe_from = 1024 * 1024;
  std::size_t threads = 1;  ///< of a program, for sums, updates and digests; the bits stay the same
};

struct SessionOptions {
  PeerId self;
  /// Drawn at random when the process starts: distinguishes it from any other process with the same id.
  std::uint64_t incarnation = 0;
  std::string site;     ///< Member::site
  bool anchor = false;  ///< on an on-demand or owned machine: leads first, copies checkpoints
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> join;   ///< addresses of peers, which the user gave
  std::vector<std::string> found;  ///< more, which may be those of others by now: they end no search
  Meeting meeting;
  /// It begins the run if nobody at the addresses to join knows of one: it listens at the first address of
  /// the token.
  bool asks_first = false;
  std::uint32_t wait_for = 1;  ///< the first peer begins round 1 when this many peers are linked
  /// A peer that founds() and has a past waits for the others, up to the patience of the run, before it
  /// resumes or begins alone.
  Past past = Past::unknown;
  std::string past_found;  ///< sign that it had begun, for people
  Round past_rounds = 0;   ///< that this peer has seen of the run, by its own event log
  WhenComplete when_complete = WhenComplete::ends;
  bool anew = false;                       ///< begin the run anew, whatever checkpoints there are
  std::uint64_t chunk_bytes = 512 * 1024;  ///< of state transfer
  std::uint64_t grain = 1;                 ///< microbatches that the engine's own learner does at once
  AveragingOptions averaging;
  RunOptions run;
  Rarely rarely;  ///< simulation alone

  /// This peer starts (or resumes) the run; all others wait for it.
  bool founds() const { return join.empty() || asks_first; }
};

/// State of a session, for progress displays. Plain values.
struct SessionView {
  Round round = 0;            ///< last one committed on this peer
  Round rounds = 0;           ///< of the run
  std::uint64_t samples = 0;  ///< of the run, committed
  PeerId leader;
  bool eldest = false;    ///< of the processes that are here, it has been in the run for longest
  swarm::Wait waiting;    ///< WaitReason::current: peers and reason, or own work; text_of() has the words
  bool finished = false;  ///< the run has ended, or this peer has left
  std::string ended;      ///< reason of the end, once finished
  std::string failure;    ///< why the session cannot go on; empty without a failure
  Ending ending = Ending::none;
  /// Means that wait for the compute thread; that of the run's last round is kept beside them.
  std::size_t waiting_updates = 0;
  static constexpr std::size_t kMostWaitingUpdates = 2;
  /// Memory held because of messages of others; held_bytes_limit() of sim/checkers/held_bytes.h is its
  /// bound.
  std::uint64_t held_bytes = 0;
  /// Time of this peer in microbatches of the round under way; of that, waiting for data.
  double work_s = 0, data_s = 0;
  wire::Bandwidth bandwidth{};  ///< of this peer, as far as transfers have shown it
};

/// Sees every decision; for checkers and progress displays. Called on the loop thread.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  /// The record is decided and this peer knows it (before it is applied).
  virtual void on_commit(const wire::Record& record) = 0;

  /// Parameters after the record's update; also after a state transfer, with restored = true.
  virtual void on_applied(const wire::Record& record, const Digest& parameters, bool restored) = 0;

  /// A member of the last record sent its status (Session::tell).
  virtual void on_status(PeerId, const wire::Status&) {}
};

}  // namespace tw::train
