// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "average/averager.h"
#include "train/session/core.h"
#include "train/session/recovery.h"
#include "train/session/saving.h"

namespace tw::train {

/// The rounds in which this peer takes part: work for the round under way, averaging, and the update that
/// follows its record. Work goes to the Worker, sums to the Averager, and what comes of both to the Swarm.
/// Loop thread only.
///
/// A contribution is handed in once its microbatches are done, and never changes after that. An update is
/// given to the Worker in the order of the records; no update waits behind kMostWaitingUpdates others.
class Rounds {
 public:
  /// All outlive it.
  Rounds(Core& core, Recovery& recovery, Saving& saving);

  const average::Averager& averager() const { return averager_; }

  StepId step() const { return step_; }

  // ---- turns: true when something came of it

  /// Opens the round after the head. Bulk messages that came early and were refused; nothing: it is open, or
  /// there is none to open.
  std::optional<std::vector<average::Averager::Refused>> open();
  bool start_work();
  bool keep_what_came();
  bool go_on_handing_over();
  bool report_averaging();

  // ---- decisions of the swarm

  /// The round is open.
  void act(const swarm::Reduce& reduce);

  void act(const swarm::SendAgain& again) { averager_.on_new_link(again.peer); }

  void act(const swarm::HandOver& order);
  void act(const swarm::Committed& committed);

  /// The history of the round is dropped: others are ahead, or this peer begins anew.
  void abandon();

  // ---- links

  void on_open(PeerId peer) { averager_.on_new_link(peer); }

  /// member: of the last record.
  void on_close(PeerId peer, bool member) { averager_.on_close(peer, member); }

  /// A bulk payload of this size, whatever it is. chunk: of a state.
  void on_bytes(PeerId from, std::size_t bytes, bool chunk);

  /// False, without effect, for a message that is not about averaging. refused: a segment that was not taken.
  bool on_message(PeerId from, const wire::Message& message,
                  std::optional<average::Averager::Refused>& refused);

  std::optional<wire::Message> next_bulk(PeerId to);

  std::vector<PeerId> take_wakeups() { return averager_.take_wakeups(); }

  // ---- time and the compute thread

  void tick();
  void pause(bool paused);
  /// The compute thread was away.
  void on_back();
  /// For the log: sent bytes and bandwidth.
  void report_traffic(bool at_once);

  void stop_probe() { averager_.stop_probe(); }

 private:
  void contribute_what_is_done();
  bool collect_ahead();
  /// Whether all sums of the round are here. If not, what they lack is collected, and contributed then.
  bool collect(Round round);
  SlotValues values_of(std::uint32_t slot);
  void cannot_work(const swarm::WorkItem& item, const data::MissingSample& missing);
  void give_back(const std::optional<swarm::WorkItem>& item);
  void begin_to_probe();
  void look_for_company();
  void report_presence();
  void report_skipped(Round round);
  void report_commit(const wire::Record& record);
  Duration computed_since(Instant since) const;
  void report_probe();
  void report_stall();
  void own_contribution_is_unfit(const average::Unfit& unfit);
  void on_update(const wire::Record& record, const Digest& parameters, Duration took);

  Core& core_;
  Recovery& recovery_;
  Saving& saving_;
  average::Averager averager_;
  StepId step_;                               ///< of the round under way; round 0: none
  Instant began_at_{};                        ///< the work for it
  std::optional<swarm::HandOver> hand_over_;  ///< waits for its sums
};

}  // namespace tw::train
