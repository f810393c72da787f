// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "host/executor_thread.h"
#include "host/files_disk.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/random_os.h"
#include "host/tcp/network_tcp.h"
#include "monitor/event_log_json.h"
#include "monitor/log_watch.h"
#include "monitor/refusal_count.h"
#include "peer/links.h"
#include "train/session.h"
#include "train/trainer.h"

namespace tw::peer {

/// What the program around a peer wants to hear, on the loop thread. Each may be left out; those that are
/// objects outlive the peer.
struct Front {
  world::EventSink* shown = nullptr;  ///< the events that the log gets, for people
  train::SessionObserver* decisions = nullptr;
  Warn warn{};                   ///< of an event log that cannot be written
  std::function<void()> over{};  ///< finished() holds, or it is to end at once: stop the loop
};

/// One peer on a real machine: the session and its doors. Everything on the loop thread, which its owner
/// runs: start(), the loop until Front::over, farewell(). Loop, executor and trainer outlive it. The loop
/// does not run any more when it is destroyed, which waits for the disk work under way.
class Peer final : public world::EventSink {
 public:
  /// With the engine's own learner. What a job of `compute` throws is for fail().
  Peer(host::Loop& loop, world::Executor& compute, Options options, Front front, train::Trainer& trainer);
  Peer(host::Loop& loop, world::Executor& compute, Options options, Front front,
       std::unique_ptr<train::Learner> learner);

  /// Opens the event log, listens, and joins or starts the run. Once; errors as of Session::start(). Returns
  /// the address at which others reach this peer; empty: at none.
  Result<std::string> start();

  /// Hands in what is done and leaves after the round. The second call ends it at once: Front::over comes
  /// from inside of it, and farewell() waits for nothing.
  void leave();

  /// The program around it does something else with its compute thread: Session::pause.
  void pause(bool paused) { session_->pause(paused); }

  /// Members of the last record.
  std::vector<wire::Member> members() const { return session_->members(); }

  /// Something outside the session failed: the peer is over. why: not empty.
  void fail(const std::string& why);

  /// The run has ended, or this peer has left or failed.
  bool finished() const { return !failure_.empty() || session_->finished(); }

  train::SessionView view() const { return session_->view(); }

  /// Why it could not go on; empty when nothing went wrong.
  std::string failure() const;

  /// Tells the other peers and the log how it ended. Runs the loop until what is queued has left, for 3 s at
  /// most. Once, after the loop.
  void farewell();

  const Options& options() const { return options_; }

  /// Where others ask for the peers of the run: HOST:PORT of the directory. Empty: no directory, or this peer
  /// listens nowhere.
  std::string meeting_point() const;

  /// For the session and the network.
  void emit(const world::Event& event) override;

 private:
  Peer(host::Loop& loop, Options options, Front front);

  train::Doors doors(world::Executor& compute);
  Status open_log();
  void tell(const world::Event& event);  // to the log and the front
  world::Event completed(world::Event event) const;
  void at(Instant when, void (Peer::*call)());
  void look();  // now and then: is it over?
  void return_memory();
  void warn(const std::string& line) const;
  void end() const;

  bool ends_at_once() const { return asked_to_leave_ > 1; }

  host::Loop& loop_;
  Options options_;
  Front front_;
  host::OsRandom random_;
  host::DiskFiles files_;
  monitor::RefusalCount refusals_;
  std::optional<monitor::JsonEventLog> log_;
  monitor::LogWatch log_watch_;
  std::string address_;
  std::string failure_;  ///< of this process, outside the session
  int asked_to_leave_ = 0;
  host::TcpNetwork network_;
  host::ThreadExecutor disk_;
  std::optional<train::Session> session_;
  host::Lifeline life_;
};

}  // namespace tw::peer
