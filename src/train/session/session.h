// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/rarely.h"
#include "swarm/wait.h"
#include "train/learn/learner.h"
#include "train/learn/trainer.h"
#include "train/run/run.h"
#include "wire/record.h"
#include "wire/status.h"
#include "world/clock.h"
#include "world/events.h"
#include "world/executor.h"
#include "world/files.h"
#include "world/network.h"

namespace tw::train {

/// The doors of one peer. All outlive the session.
struct Doors {
  world::Clock& clock;
  world::Network& network;
  world::Files& files;
  world::Executor& compute;
  world::Executor& disk;
  world::EventSink& events;
};

/// Whether the run had begun before this process started.
enum class Past {
  unknown,  ///< a checkpoint of the run, if there is one here, says so
  begun,    ///< it had: others may live (--rejoin, an event log of the run)
  over,     ///< nobody of it lives who could be reached
};

struct SessionOptions {
  PeerId self;
  /// Drawn at random when the process starts: tells it from another one, earlier or at the same time, with
  /// the same id.
  std::uint64_t incarnation = 0;
  std::string site;     ///< Member::site
  bool anchor = false;  ///< on a machine that stays: leads first, copies checkpoints away
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> join;  ///< addresses of peers; empty: this peer starts (or resumes) the run
  std::uint32_t wait_for = 1;     ///< the first peer begins round 1 when so many peers are there
  /// A peer with nobody to join and a past waits for the others, up to the patience of the run, before it
  /// resumes or begins alone.
  Past past = Past::unknown;
  std::string past_found;                  ///< what says that it had begun, for people
  std::uint64_t segment_length = 0;        ///< floats; 0: as is usual (average/reduction/geometry.h)
  std::uint64_t chunk_bytes = 512 * 1024;  ///< of state transfer
  std::uint64_t grain = 1;                 ///< microbatches that the engine's own learner does at once
  /// Lines are probed (average/bandwidth/probe.h) for vectors of so many bytes on the wire: shorter ones are
  /// there in no time over any line.
  std::uint64_t probe_from = 1024 * 1024;
  RunOptions run;
  Rarely rarely;  ///< simulation alone
};

/// How a session stands, for whoever shows progress. Plain values.
struct SessionView {
  Round round = 0;            ///< last committed one here
  std::uint64_t samples = 0;  ///< of the run, committed
  PeerId leader;
  swarm::Wait waiting;    ///< whom for and why, or own work; text_of() has the words
  bool finished = false;  ///< the run has ended, or this peer has left
  std::string ended;      ///< how, once finished
  std::string failure;    ///< why the session cannot go on; empty when it did nothing wrong
  bool complete = false;  ///< finished with the run, which needs nobody any more
  /// The failure is that nobody was there of a run that had begun before: another start may find somebody.
  bool may_try_again = false;
  /// Means that wait for the compute thread; that of the run's last round is kept beside them.
  std::size_t waiting_updates = 0;
  static constexpr std::size_t kMostWaitingUpdates = 2;
  /// Because of what others sent or asked for; held_bytes_limit() of train/session/held_bytes.h is its bound.
  std::uint64_t held_bytes = 0;
};

/// Sees every decision; for checkers and progress displays. Called on the loop thread.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  /// The record is decided and known here (before it is applied).
  virtual void on_commit(const wire::Record& record) = 0;

  /// Parameters after the record's update; also after a state transfer, with restored = true.
  virtual void on_applied(const wire::Record& record, const Digest& parameters, bool restored) = 0;

  /// A member of the last record told how it stands (Session::tell).
  virtual void on_status(PeerId, const wire::Status&) {}
};

/// One peer of a run, from greeting to leaving: the public C++ interface. Takes part as long as its doors
/// bring it events; everything on the loop thread; the trainer is called on the compute executor alone.
class Session {
 public:
  /// With the engine's own learner (train/learn/engine_learner.h).
  Session(Doors doors, SessionOptions options, Trainer& trainer, SessionObserver* observer = nullptr);
  Session(Doors doors, SessionOptions options, std::unique_ptr<Learner> learner,
          SessionObserver* observer = nullptr);
  ~Session();

  /// Listens and joins or starts the run. An error (address in use, unreadable checkpoint folder) leaves
  /// nothing behind. Returns the address at which others reach this peer.
  Result<std::string> start();

  /// Hands in what is done, leaves after the round; finished() then. The second call leaves at once.
  void leave();

  /// The machine is taken away so soon: what is done is in the round by then, or another peer has it.
  /// finished() as soon as nothing keeps this one. Once more: the earlier end counts.
  void leave_within(Duration time);

  /// The machine may be taken away soon, or is safe again: others lead and keep sums meanwhile.
  void set_at_risk(bool at_risk);

  /// The machine stands still, in so long and for so long: others do not take its silence for an end.
  void freeze(Duration in, Duration lasts);

  /// The owner of the compute thread does something else: others do this peer's part until it is back.
  void pause(bool paused);

  /// Tells all linked peers how this one stands, for whoever watches there.
  void tell(const wire::Status& status);

  /// The run ends with the next round that this peer leads.
  void end_run();

  SessionView view() const;

  /// view().finished, for a caller that looks often.
  bool finished() const;

  /// Members of the last record.
  std::vector<wire::Member> members() const;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace tw::train
