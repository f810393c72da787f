// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/sample_order.h"
#include "host/disk/folder_claim.h"
#include "host/executor_thread.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/store/store_files.h"
#include "host/system/random_os.h"
#include "host/tcp/network_tcp.h"
#include "monitor/fold/journal.h"
#include "monitor/logs/refusal_count.h"
#include "monitor/terminal/troubles.h"
#include "peer/links.h"
#include "peer/live_journal.h"
#include "peer/notice_watch.h"
#include "peer/peer_log.h"
#include "peer/search/peer_finder.h"
#include "peer/viewer.h"
#include "spot/signals.h"
#include "train/learn/model.h"
#include "train/session/session.h"
#include "world/store.h"

namespace tw::peer {

/// Calls to the program around a peer, on the loop thread. Each may be left out; objects outlive the peer.
struct Front {
  world::EventSink* shown = nullptr;  ///< the events that the log gets, for people; Phase::warn says warnings
  train::SessionObserver* decisions = nullptr;
  std::function<void()> over{};              ///< finished() holds: stop the loop. Never from inside a call
  std::function<world::StoreUses()> data{};  ///< what the program's own reads asked of stores so far
};

/// One peer on a real machine: the session and its doors. Everything on the loop thread, which its owner
/// runs: start(), the loop until Front::over, farewell(). Loop, executor and model outlive it. The loop
/// does not run any more when it is destroyed, which waits for the disk work under way.
class Peer final : public world::EventSink {
 public:
  /// With a model of its own. Pass exceptions of jobs of `compute` to fail().
  Peer(host::Loop& loop, world::Executor& compute, Options options, Front front, train::Model& model);
  Peer(host::Loop& loop, world::Executor& compute, Options options, Front front,
       std::unique_ptr<train::Learner> learner);

  /// Claims the folder of checkpoints (for 5 s at most: it runs the loop), opens the event log, asks for
  /// notices of this machine (3 s), listens, and joins or starts the run. Call once. Errors: those of
  /// Session::start(), another run in the folder, and a notice; see ending().
  /// Returns the address at which others reach this peer; empty: none.
  Result<std::string> start();

  /// Contributes its work and leaves after the round; a second call has no effect.
  void leave() { session_->leave(); }

  /// Session::end_run.
  void end_run(train::EndCause cause) { session_->end_run(cause); }

  /// farewell() then does not wait.
  void leave_at_once(train::Ending as = train::Ending::left);

  /// A signal arrived: a notice, or one of the two above.
  void take(spot::Signal signal);

  train::Ending ending() const { return view().ending; }

  /// All its work is finished: it was not told to leave at once, nor did its farewell run out of time.
  bool finished_work() const { return !leaves_at_once_; }

  /// Session::goes_on_from.
  void goes_on_from(Round begun) { session_->goes_on_from(begun); }

  /// The program around it uses the compute thread itself: Session::pause.
  void pause(bool paused) { session_->pause(paused); }

  /// For whoever reads the log: which samples of the data set those of the run are.
  void tell_order(const data::SampleOrder& order);

  /// Comes to the next barrier: it computes no more until pass_barrier(). Not while it stands at one.
  void arrive_at_barrier();

  /// Goes on if all live peers have come; true while it stands at none.
  bool pass_barrier();

  std::uint64_t barriers_passed() { return live_.barrier().passed(); }

  /// Those that it waits for at the barrier.
  std::vector<PeerId> awaited_at_barrier() { return live_.barrier().awaited(session_->company()); }

  /// Members of the last record.
  std::vector<wire::Member> members() const { return session_->members(); }

  /// Something outside the session failed: the peer ends. why: not empty.
  void fail(const std::string& why) { session_->fail(why); }

  /// The run has ended, or this peer has left or failed.
  bool finished() const { return session_->finished(); }

  train::SessionView view() const { return session_->view(); }

  /// What keeps the run from saving, and peers from joining it.
  const monitor::Troubles& troubles() const { return troubles_; }

  /// Tells the other peers and the log how it ended. Runs the loop until queued messages are sent, for 3 s at
  /// most, and until checkpoints that are under way are saved and copied: names that wait when it lasts. A
  /// notice bounds it, and SIGTERM without a deadline ends it. Call once, after the loop.
  void farewell();

  const Options& options() const { return options_; }

  /// What this peer knows of the run and all its peers.
  const LiveJournal& live() const { return live_; }

  /// Where the run is seen. Empty: nowhere.
  std::string watch_url() const { return viewer_ ? viewer_->url() : ""; }

  /// Viewer::how_to_watch.
  std::string how_to_watch() const { return viewer_ ? viewer_->how_to_watch() : ""; }

  /// For the session and the network.
  void emit(const world::Event& event) override;

 private:
  Peer(host::Loop& loop, Options options, Front front);

  train::Doors doors(world::Executor& compute);
  Status open_viewer();
  void tell(const world::Event& event);  // to the log and the front
  world::Event completed(world::Event event);
  void complete(event::Start& start) const;
  void log_is_not_copied(const std::string& why);
  void at(Instant when, void (Peer::*call)());
  void look();  // now and then
  void tell_others();
  void watch_for_notices();
  void heed(const spot::Notice& notice);
  void act_on(const spot::Notice& notice);
  const spot::Notice* condemned() const;
  void return_memory();
  void warn(const std::string& line);

  host::Loop& loop_;
  Options options_;
  Front front_;
  host::OsRandom random_;
  host::StoreFiles files_;
  monitor::RefusalCount refusals_;
  monitor::Troubles troubles_;
  std::optional<host::FolderClaim> claim_;  ///< until the farewell
  PeerLog log_;
  spot::Signals signals_;
  std::vector<spot::Notice> notices_;  ///< notices so far; the session gets them once it has started
  bool leaves_at_once_ = false;
  LiveJournal live_;
  host::TcpNetwork network_;

  struct Threads {
    host::ThreadExecutor disk, copier;
  } threads_;

  std::optional<train::Session> session_;
  std::optional<PeerFinder> finder_;
  std::unique_ptr<NoticeWatch> watch_;
  std::unique_ptr<Viewer> viewer_;
  host::Lifeline life_;
};

}  // namespace tw::peer
