// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "average/averager.h"
#include "swarm/swarm.h"
#include "sync/replica.h"
#include "train/run/run_facts.h"
#include "train/session/alarm.h"
#include "train/session/checkpoints.h"
#include "train/session/counted_network.h"
#include "train/session/counted_time.h"
#include "train/session/departure.h"
#include "train/session/peer_search.h"
#include "train/session/session.h"
#include "train/session/waits.h"
#include "train/session/worker.h"

namespace tw::train {

/// The router of a session: it passes messages, time and finished jobs to the objects of the session, and
/// their actions to the doors and to each other. Each object has one subject: Swarm (decisions), Averager,
/// Replica (the state, from others and for others), Worker (the queue to the learner), Checkpoints,
/// PeerSearch, Departure, Waits. session.cc: beginning, network, time. session_rounds.cc: work, averaging,
/// updates. session_sync.cc: the way to the head of the history. session_past.cc: what is left from before.
/// session_waits.cc: its waits.
class Session::Machine final : public world::NetworkEvents {
 public:
  Machine(Doors doors, SessionOptions options, std::unique_ptr<Learner> learner, SessionObserver* observer);

  Result<std::string> start();
  void leave();
  void leave_within(Duration time);
  void set_at_risk(bool at_risk);
  void freeze(Duration in, Duration lasts);
  void pause(bool paused);
  void tell(const wire::Status& status);
  void end_run();
  bool is_drained() const;
  SessionView view() const;

  bool finished() const { return departure_.ended(); }

  std::vector<wire::Member> members() const;
  std::vector<PeerId> company() const;

  const ModelSize& size() const { return worker_.size(); }

  world::Admission admit(const Frame& hello) override;
  void on_open(PeerId peer, const Frame& hello) override;
  void on_message(PeerId from, Frame frame) override;
  void on_close(PeerId peer, const std::string& why) override;
  void on_refused(const std::string& address, const world::DialFailure& failure) override;
  std::optional<Frame> next_bulk(PeerId to) override;

 private:
  using Numbers = std::vector<std::pair<std::string, double>>;

  // ---- session.cc
  void begin_history();
  void pump();
  bool do_what_swarm_asks();
  bool take_turn();
  void flush();
  void arm();
  void on_timer();
  world::Refusal turned_away(world::Refusal refusal);
  std::optional<world::Refusal> of_another_run(const wire::Hello& greeting) const;
  std::string own_side(const world::Refusal& refusal) const;
  void was_rejected(const std::string& address, const world::Refusal& refusal);
  PeerSearch::Situation situation() const;
  void give_up_when_nobody_has_the_state(Instant now);
  void go_on_alone_when_nobody_comes(Instant now);
  void ask_for_checkpoints(Instant now);
  bool lets_another_resume(Instant now);
  void act(const swarm::Dial& dial);
  void act(const swarm::Hangup& hangup);
  void act(const swarm::Reduce& reduce);
  void act(const swarm::Committed& committed);
  void act(const swarm::CatchUp& catch_up);
  void act(const swarm::SendAgain& again);
  void act(const swarm::HandOver& order);
  void act(const swarm::Ended& ended);
  void end(const std::string& why, bool failed);
  void emit(world::Phase phase, Round round, std::string why = {}, Numbers numbers = {});
  void emit(world::Event event);  // stamps it
  void refuse(world::Cause cause, std::optional<PeerId> peer, std::string why);
  void tell_of_traffic(bool at_once);
  std::uint64_t held_bytes() const;

  // ---- session_waits.cc
  swarm::Wait waiting() const;
  swarm::Wait own_work() const;
  swarm::Wait wait_for_state() const;
  swarm::Wait wait_for_segments() const;
  swarm::Wait with_addresses(swarm::Wait wait) const;
  void watch_waits();

  wire::Member self() const { return {options_.self, address_, options_.incarnation, options_.site}; }

  // ---- session_rounds.cc
  // These are true when something came of it.
  bool open_round();
  void tell_of_skipped(Round round);
  bool start_work();
  void cannot_work(const swarm::WorkItem& item, const data::MissingSample& missing);
  void give_back(const std::optional<swarm::WorkItem>& item);
  void tell_where_the_worker_is();
  void settle_when_ready();
  void on_back();
  void contribute_what_is_done();
  SlotValues values_of(std::uint32_t slot);
  bool go_on_handing_over();
  bool keep_what_came();
  void begin_to_probe();
  void report_probe();
  void link_is_gone(PeerId peer, const std::string& why);
  void forget_link(PeerId peer);
  void hang_up_on(PeerId from, const std::string& nonsense);
  void refuse_bulk(const average::Averager::Refused& refused);
  bool report_averaging();
  void own_contribution_is_unfit(const average::Reduction::Unfit& unfit);
  void report_stall();
  void on_update(const wire::Record& record, const Digest& parameters, Duration took);
  void after_update(const wire::Record& record);
  void finish_when_done();
  double own_samples(const wire::Record& record) const;

  // ---- session_sync.cc
  void leave_round();
  bool computes_other_bits();
  bool catch_up_further();  // true when something came of it
  void restore(sync::StateImage image, world::Cause from, Numbers parts);
  void replay(sync::FetchedMean mean);
  void go_on_from(const sync::Replica::Tip& tip);
  void serve_images();
  void let_chunks_go();
  static std::vector<std::pair<std::string, std::string>> of_record(const wire::Record& record, bool begins);
  void save_checkpoint(const wire::Record& record);
  void copy_checkpoint(bool awaited);
  void tell_of_saving(world::Phase phase, const wire::Record& record, const Status& saved, Duration took);
  bool is_last_to_leave() const;
  bool saves_the_last_state(const swarm::Ended& ended);
  void begin_anew_from_tip();
  void go_on_from_tip();
  std::vector<PeerId> sources() const;
  sync::Replica::Others others() const;
  std::vector<std::string> others_of_last_majority() const;

  // ---- session_past.cc
  void consider_the_past();
  void set_checkpoints_aside();
  void found_checkpoints(Checkpoints::Loaded& loaded);
  void found_no_checkpoint();
  void take_checkpoint(sync::LoadedCheckpoint loaded);
  bool goes_on_after(const sync::LoadedCheckpoint& loaded) const;
  void stand_at_the_end(Round round);
  void wait_for_others(std::string found);
  std::string lost_text() const;
  bool has_lost_the_run() const;
  void resume(sync::StateImage checkpoint);
  bool on_checkpoint_message(PeerId from, const wire::Message& message);
  void answer(PeerId from, const wire::AskCheckpoint& ask);
  std::string checkpoint_places() const;

  /// Between the session and its doors.
  struct Meters {
    CountedTime time;
    StampedEvents events;
    CountedNetwork network;
  };

  Meters meters_;
  Doors doors_;  ///< with meters_
  SessionOptions options_;
  SessionObserver* observer_;
  Waits waits_;
  Worker worker_;
  average::Geometry geometry_;
  RunFacts facts_;
  std::string address_;
  std::optional<swarm::Swarm> swarm_;

  average::Averager averager_;
  sync::Replica replica_;
  Checkpoints checkpoints_;
  StepId step_;         ///< of the round under way; round 0: none
  Instant began_at_{};  ///< the work for it
  Alarm alarm_{doors_.clock, [this] { on_timer(); }};
  PeerSearch search_;
  Departure departure_;
  bool pumping_ = false;
};

}  // namespace tw::train
