// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "swarm/announcing.h"
#include "swarm/following.h"
#include "swarm/leading.h"
#include "swarm/leaving.h"
#include "swarm/swarm_core.h"

namespace tw::swarm {

/// One peer's view of who takes part, who leads, what was decided and what is to be done next: membership,
/// failure detection, leases, leadership with ballots, votes and records (docs/protocol.md). A step machine:
/// time and messages in, messages and actions out. It never sees a gradient.
///
/// It passes each message and call to the object whose subject it is, and follows the history itself: a
/// record that was decided begins the next round for all of them. After each call it settles what follows.
class Swarm {
 public:
  using Options = SwarmOptions;

  Swarm(Options options, Instant now);
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  /// Others reach this peer there; before all other calls.
  void listens_at(const std::string& address) { core_.options.self.address = address; }

  // ---- from the network
  void on_open(Instant now, const wire::Member& peer, const wire::Marks& marks = {});
  void on_close(Instant now, PeerId peer, const std::string& why);
  void on_message(Instant now, PeerId from, const wire::Message& message);
  /// `caller` was refused: its id is taken. The member with that id (else the only founder) gets its place.
  void on_taken(Instant now, const wire::Member& caller, bool founds = false);
  void step(Instant now);

  Instant next_step() const { return core_.next_tick; }

  // ---- from the owner
  /// There is no history yet, and the parameters from the seed are ready.
  void fresh(Instant now, const Digest& parameters);
  /// No peer that knows the history was found: it may begin anew, marked as decided without a majority.
  void go_on_alone(Instant now);
  /// This peer's own updates come too late: it takes the state of others.
  void fall_behind(Instant now, std::string why);
  /// The state after this record is here (restored, resumed): go on from it. moved_on: with overlap, the
  /// round after it was called where the state comes from, and it is too late to compute for it.
  void begin(Instant now, const wire::Record& record, const Digest& parameters, bool moved_on = false);
  /// The update of this round is applied.
  void applied(Instant now, Round round, const Digest& parameters);
  /// The whole mean of the present plan is here.
  void completed(Instant now, const Digest& mean);
  /// missing: if the suspect is slow, the segments of its share that are not here.
  void report_stall(Instant now, PeerId suspect, wire::StallCause cause, RangeSet missing = {});

  /// The next microbatches, at most `most`; 0 (not known yet): all that are leased. One item at a time.
  std::optional<WorkItem> begin_work(Instant now, std::uint64_t most = 1);
  /// The first microbatches of the item are in their slot's sum; the others are still held.
  void finish_work(Instant now, const WorkItem& item, const Finished& finished);
  /// Nothing of the item was done: others get what is held. failed: why this peer can never compute it.
  void give_back(Instant now, const WorkItem& item, const std::optional<FailedSample>& failed = {});
  /// Unless its thread is here, others get the microbatches that have not begun.
  void set_presence(Instant now, wire::Presence presence);
  /// Hand in what is done and leave after the round, or by HandOver if the round ends after the deadline.
  void leave(Instant now, std::optional<Instant> deadline = {});
  /// All sums of a HandOver are on their way.
  void handed_over(Instant now);
  /// Sums that `from` handed over are here. Returns the slots in which they count, in order; may be none.
  std::vector<std::uint32_t> keep(Instant now, PeerId from, const wire::Entrust& entrust);
  /// Its machine may be taken away soon, or is safe again. While at risk, it neither leads nor keeps sums.
  void set_at_risk(Instant now, bool at_risk);

  // ---- views
  wire::PeerState peer_state() const { return core_.part.peer_state(); }

  const std::optional<wire::Record>& head() const { return core_.head(); }

  /// All that this peer knows of the run, to read.
  const SwarmCore& view() const { return core_; }

  /// This peer's wait, as told to others. Wait::Kind::answer has no address, which only the owner knows.
  Wait waiting() const;
  /// Bytes that are kept because of other peers, known or not.
  std::uint64_t held_bytes() const;

  static constexpr std::uint64_t kNotesBytes = 2048;  ///< at most, per peer, beside the roster

  // ---- its objects, for calls from which nothing follows at once
  Membership& membership() { return core_.membership; }

  Work& work() { return core_.work; }

  Leaving& leaving() { return leaving_; }

  Announcing& announcing() { return announcing_; }

  Leading& leading() { return leading_; }

  Outputs& outputs() { return core_.outputs; }

 private:
  void receive(PeerId from, const wire::Heartbeat& heartbeat);
  void receive(PeerId from, const wire::Peers& peers);
  void receive(PeerId from, const wire::Progress& progress);
  void receive(PeerId from, const wire::Lease& lease);

  void receive(PeerId from, const wire::Recall& recall) { following_.take(from, recall); }

  void receive(PeerId from, const wire::Plan& plan);
  void receive(PeerId from, const wire::Vote& vote);

  void receive(PeerId from, const wire::Prepare& prepare) { following_.take(from, prepare); }

  void receive(PeerId from, const wire::Promise& promise);
  void receive(PeerId from, const wire::Commit& commit);
  void receive(PeerId from, const wire::StallReport& report);
  void receive(PeerId from, const wire::HandOver& order);
  void receive(PeerId from, const wire::Failures& failures);
  void receive(PeerId from, const wire::Stop& stop);

  void dispatch(PeerId from, const wire::Message& message);
  void tick();
  void settle();  // own messages, the leader's part, and what follows from both
  void adopt(const wire::Record& record);
  void begin_round(bool again);
  void out_of_step(CatchUp why);

  SwarmCore core_;
  Leading leading_;
  Announcing announcing_;
  Following following_;
  Leaving leaving_;
  bool run_is_over_ = false;  // a peer told of its last record
};

}  // namespace tw::swarm
