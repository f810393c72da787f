// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/learn/learner.h"
#include "train/learn/model.h"
#include "train/session/alarm.h"
#include "train/session/core.h"
#include "train/session/recovery.h"
#include "train/session/rounds.h"
#include "train/session/saving.h"
#include "train/session/search/linking.h"
#include "train/session/search/resumption.h"
#include "train/session/session_options.h"
#include "train/session/wait_reason.h"

namespace tw::train {

/// One peer of a run, from greeting to leaving: the public C++ interface. It runs as long as its doors
/// deliver events, on the loop thread; the model is called only on the compute executor.
///
/// Inside it is a router: messages, time and finished jobs go to the object whose subject they are, and what
/// the swarm decides goes to them as actions. Then turns are taken until none brings anything (pump).
class Session final : private world::NetworkEvents {
 public:
  /// With the engine's own learner (train/learn/engine_learner.h).
  Session(Doors doors, SessionOptions options, Model& model, SessionObserver* observer = nullptr);
  Session(Doors doors, SessionOptions options, std::unique_ptr<Learner> learner,
          SessionObserver* observer = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Listens and joins or starts the run. An error (address in use, unreadable checkpoint folder) leaves
  /// nothing behind. Returns the address at which others reach this peer.
  Result<std::string> start();

  /// Contributes the finished work and leaves after the round; then finished(). Before start(): at once. as:
  /// left or interrupted.
  void leave(Ending as = Ending::left);
  void leave_at_once(Ending as = Ending::left);

  /// Something outside failed, such as a job: the session cannot go on.
  void fail(std::string why, Ending as = Ending::failed) { core_.departure.fail(std::move(why), as); }

  /// The machine is taken away after `time`: by then the work is in the round, or another peer has it.
  /// finished() as early as possible. The earliest end of several calls counts.
  void leave_within(Duration time);

  /// The machine may be taken away soon, or is safe again: others lead and keep sums meanwhile.
  void set_at_risk(bool at_risk);

  /// The machine freezes after `in`, for `lasts`: others do not count its silence as a loss.
  void freeze(Duration in, Duration lasts);

  /// The owner of the compute thread is busy: others do this peer's part until it is back.
  void pause(bool paused);

  /// Sends the status of this peer to all linked peers.
  void tell(const wire::Status& status);

  /// The state that the learner got is of a run that goes on from so many rounds of one before, which count
  /// for RunOptions::rounds. Before the job that restores it is done.
  void goes_on_from(Round begun) { core_.goes_on_from(begun); }

  /// The run ends for all its peers: with the round under way, or the next one where that was called. A
  /// budget is judged by each peer, and counts when it leads; the program of any peer does.
  void end_run(EndCause cause);

  SessionView view() const;

  /// view().finished, for a caller that looks often.
  bool finished() const { return core_.departure.ended(); }

  /// Members of the last record.
  std::vector<wire::Member> members() const;

  /// Those of them that are linked, beside this peer.
  std::vector<PeerId> company() const;

  /// How this peer is linked to others.
  Linking& linking() { return linking_; }

  const ModelSize& size() const { return core_.worker.size(); }

 private:
  world::Admission admit(const Frame& hello) override { return linking_.admit(hello); }

  void on_open(PeerId peer, const Frame& hello) override;
  void on_message(PeerId from, Frame frame) override;
  void on_close(PeerId peer, const std::string& why) override;
  void on_refused(const std::string& address, const world::DialFailure& failure) override;
  std::optional<Frame> next_bulk(PeerId to) override;

  void report_start();
  void route(PeerId from, wire::Message message, std::size_t payload);
  void link_is_gone(PeerId peer, const std::string& why);
  void forget_link(PeerId peer);
  bool is_member(PeerId peer) const;
  void hang_up_on(PeerId from, const std::string& nonsense);
  void refuse(const average::Averager::Refused& refused);

  void pump();
  bool do_what_swarm_asks();
  bool take_turn();
  bool open_round();
  void flush();
  void arm();
  void on_timer();

  void act(const swarm::Dial& dial) { core_.network.connect(dial.address); }

  void act(const swarm::Hangup& hangup);
  void act(const swarm::Reduce& reduce);

  void act(const swarm::Committed& committed) { rounds_.act(committed); }

  void act(const swarm::CatchUp& catch_up);

  void act(const swarm::SendAgain& again) { rounds_.act(again); }

  void act(const swarm::HandOver& order) { rounds_.act(order); }

  void act(const swarm::Ended& ended);
  void finish_when_done();
  void on_end();

  Core core_;
  Saving saving_;
  Recovery recovery_;
  Rounds rounds_;
  Resumption resumption_;
  Linking linking_;
  WaitReason wait_reason_;
  std::function<void()> ended_;  ///< Doors::ended
  Alarm alarm_;
  bool pumping_ = false;
};

}  // namespace tw::train
