// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bind/caller_learner.h"
#include "bind/caller_model.h"
#include "bind/narrator.h"
#include "bind/settings.h"
#include "bind/verdict.h"
#include "bind/view_json.h"
#include "host/executor_caller.h"
#include "host/executor_thread.h"
#include "host/loop.h"
#include "host/watched_process.h"
#include "peer/peer.h"

namespace tw::bind {

/// What a signal of the process means; none: nothing.
std::optional<spot::Signal> notice_of(int signal);

/// A peer on a thread of its own, with a loop of its own; its compute thread is the program's. Created and
/// destroyed on the program's thread.
class PeerThread final : public world::EventSink {
 public:
  /// What the program measured of the parameters after a round.
  struct Evaluation {
    Round round = 0;
    std::string name;
    double value = 0;
  };

  /// Options that were checked already. links: with session.run.
  struct Plan {
    CallerModel model;
    Callbacks callbacks{nullptr};
    peer::Options links;
    std::uint64_t grain = 1;
    Round begun = 0;  ///< of the program's own state; goes_on_from() says when it is of another
  };

  PeerThread(Plan plan, std::vector<float> initial);

  /// Leaves the others: Peer::farewell.
  ~PeerThread() override;

  /// The address, once it listens; an error when it cannot. Program's thread.
  Result<std::string> started();

  // ---- the program's thread
  host::CallerExecutor& executor() { return *executor_; }

  CallerLearner& learner() { return *learner_; }

  CallerWork& work() { return work_; }

  /// The program hears the warnings since the last call, and stderr gets the lines for people.
  void say_news();

  /// The vectors outlive this object with it.
  // owners: the learner, and each vector that the program holds
  const std::shared_ptr<train::TrainState>& state() const { return state_; }

  /// Inside tw_calls.load.
  bool is_loading() const { return is_loading_; }

  /// The vector as rounds average it.
  const average::Fragments& fragments() const { return state_->fragments(); }

  // ---- any thread
  /// With all that the round changed of which the program has heard. Waits for the loop thread, a second at
  /// most, and has what was known before where that is busy for longer.
  View view() const;
  /// Lines of JSON, since the last call.
  std::string take_events();
  void leave(bool at_once);
  void end_run();
  /// The others hear at once what the destructor would tell them. Not at_once: it comes soon, and the peer
  /// leaves after the round if that is before it.
  void close(bool at_once = true);
  void take(spot::Signal signal);
  void pause(bool paused);
  void arrive_at_barrier();
  /// Session::goes_on_from, inside the job that restores the state.
  void goes_on_from(Round begun);
  void tell_order(const data::SampleOrder& order);
  /// An event of the phase "warn", which the program hears as a warning.
  void warn(std::string text);
  /// Later than the end of this peer's part, too; then on the program's thread alone.
  void tell_evaluation(Evaluation evaluation);

  // ---- loop thread
  void emit(const world::Event& event) override;

 private:
  struct Shared {
    View view;
    std::uint64_t changes = 0;             ///< events that change the view
    std::uint64_t seen = 0;                ///< of them, in the view
    bool closes = false;                   ///< the next view is the last one
    bool is_last = false;                  ///< no other view comes
    std::deque<monitor::LogEntry> events;  ///< their text is made only for those who ask
    std::vector<std::string> warnings{};
    std::vector<Evaluation> evaluations{};
    Narrator narrator;

    /// The run had so many samples up to this round; rounds after it are of a history that was given up.
    void count(Round round, std::uint64_t samples);
  };

  train::StateHooks hooks();
  void run();
  void count_from(Round begun);
  void invite();
  void say_end();
  void write_evaluations();
  void look();
  void keep_looking();
  void heed(spot::Signal signal);
  void refresh();
  void post(std::function<void(peer::Peer&)> call);

  Plan plan_;
  CallerWork work_;
  std::shared_ptr<train::TrainState> state_;  // owners: see state()
  host::Loop loop_;
  std::unique_ptr<host::CallerExecutor> executor_;
  std::unique_ptr<host::ThreadExecutor> beside_;
  CallerLearner* learner_ = nullptr;  ///< of peer_, which lives as long as this object
  std::optional<peer::Peer> peer_;
  std::promise<Result<std::string>> started_;
  std::string address_;
  std::string failure_;
  Verdict verdict_;
  host::WatchedProcess launcher_;    ///< `tw run`, which signals cannot reach when it is killed
  bool is_loading_ = false;          ///< of the program's thread
  bool over_ = false;                ///< the thread has ended, and was joined
  std::atomic<bool> ended_ = false;  ///< it touches nothing any more
  mutable std::mutex mutex_;
  mutable std::condition_variable refreshed_;
  Shared shared_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tw::bind
