// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "swarm/action.h"
#include "swarm/ballots/acceptor.h"
#include "swarm/ballots/history.h"
#include "swarm/ballots/last_round.h"
#include "swarm/leading.h"
#include "swarm/leases/work.h"
#include "swarm/members/farewell.h"
#include "swarm/members/membership.h"
#include "swarm/members/own_word.h"
#include "swarm/members/part.h"
#include "swarm/swarm_options.h"

namespace tw::swarm {

/// One peer's view of who takes part, who leads, what was decided and what is to be done next: membership,
/// failure detection, leases, leadership with ballots, votes and records (docs/protocol.md). A step machine:
/// time and messages in, messages and actions out. It never sees a gradient.
class Swarm {
 public:
  using Options = SwarmOptions;

  Swarm(Options options, Instant now);

  void listens_at(const std::string& address);  ///< others reach this peer there; before all other calls

  // ---- from the network
  void on_open(Instant now, const wire::Member& peer, const wire::Marks& marks = {});
  void on_close(Instant now, PeerId peer, const std::string& why);
  void on_refused(Instant now, const std::string& address);

  /// A dial of this address reached a peer that is linked already.
  void on_linked_there(const std::string& address) { membership_.on_linked_there(address); }

  void on_message(Instant now, PeerId from, const wire::Message& message);
  /// `caller` was refused: its id is taken. The member with that id (else the only founder) gets its place.
  void on_taken(Instant now, const wire::Member& caller, bool founds = false);
  /// A byte of the peer arrived, bulk data included.
  void on_sign_of_life(Instant now, PeerId peer);
  void step(Instant now);

  Instant next_step() const { return times_.next_tick; }

  // ---- from the owner
  /// There is no history yet, and the parameters from the seed are ready.
  void fresh(Instant now, const Digest& parameters);
  /// No peer that knows the history was found: it may begin anew, marked as decided without a majority.
  void go_on_alone(Instant now);
  /// This peer's own updates come too late: it takes the state of others.
  void fall_behind(Instant now, std::string why);
  /// Dials these peers, which took part in the run.
  void seek(const std::vector<wire::Member>& members);
  /// The state after this record is here (restored, resumed): go on from it.
  void begin(Instant now, const wire::Record& record, const Digest& parameters);
  /// The update of this round is applied.
  void applied(Instant now, Round round, const Digest& parameters);
  /// The whole mean of the present plan is here.
  void completed(Instant now, const Digest& mean);
  /// missing: if the suspect is slow, the segments of its share that are not here.
  void report_stall(Instant now, PeerId suspect, wire::StallCause cause, RangeSet missing = {});

  /// Bandwidth that was measured at this peer.
  void measured(const wire::Bandwidth& line) { own_.bandwidth = line; }

  /// The next microbatches, at most `most`; 0 (not known yet): all that are leased. One item at a time.
  std::optional<WorkItem> begin_work(Instant now, std::uint64_t most = 1);
  /// Samples of the run that are leased to this peer and not done. They may still go to others.
  RangeSet leased_samples() const;
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
  /// Its machine stands still from `from` for `lasts`: tells others to expect its silence.
  void freeze(Instant now, Instant from, Duration lasts);

  /// Progress while this peer takes the state of others, for their information.
  void catching_up(Instant now, const wire::CatchingUp& how);

  /// The present round is the last one (takes effect where this peer leads).
  void end_run() { leading_.end_run(); }

  // ---- views
  wire::PeerState peer_state() const { return part_.peer_state(); }

  const std::optional<wire::Record>& head() const { return history_.head(); }

  /// Leader of the round under way: its first live member, or the owner of the ballot that is followed.
  std::optional<PeerId> leader() const;

  bool leads() const { return leading_.lead() != nullptr; }

  /// Lower bound in seconds of averaging by its own plan; 0 if no bandwidth is known or another peer leads.
  double least_reduce_s(const wire::Plan& plan) const {
    return leads() ? leading_.lead()->least_reduce_s(plan) : 0;
  }

  /// True when the sum in this slot is that of these microbatches.
  bool has_done_just(std::uint32_t slot, const RangeSet& microbatches) const;

  /// That sum is being sent: it must not change any more.
  void close_slot(std::uint32_t slot) { work_.close(slot); }

  /// This peer's wait, as told to others. Wait::Kind::answer has no address, which only the owner knows.
  Wait waiting() const;
  /// True at the head of the history for a non-member, if none of the head's members is here.
  bool is_orphaned() const;
  /// After the last record: members that have not confirmed it, and peers that fetch the state.
  std::vector<PeerId> not_at_the_end() const;

  Duration round_trip(PeerId peer) const { return membership_.round_trip(peer); }

  const Roster& roster() const { return membership_.roster(); }

  /// Anchors among the linked peers and this one.
  std::set<PeerId> anchors() const;
  const Stances& stances() const;

  /// Bytes that are kept because of other peers, known or not.
  std::uint64_t held_bytes() const;

  static constexpr std::uint64_t kNotesBytes = 2048;  ///< at most, per peer, beside the roster

  /// False for a process that a later one replaced, and for one just linked in a member's place.
  bool may_link(const wire::Member& process) const { return membership_.may_link(now_, process, members()); }

  void is_own(const std::string& address) { membership_.is_own(address); }

  /// The history that goes before all others that heartbeats or a late commit told of, if any.
  wire::Rank best_told() const { return membership_.best_told(now_); }

  // ---- outputs
  wire::Outbox take_messages() { return std::exchange(messages_, {}); }

  bool has_actions() const { return !actions_.empty(); }

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  std::vector<world::Event> take_events() { return std::exchange(events_, {}); }

  /// Events of rounds up to this one, which led to its record.
  std::vector<world::Event> take_events_until(Round round);

 private:
  void receive(PeerId from, const wire::Heartbeat& heartbeat);
  void receive(PeerId from, const wire::Peers& peers);
  void receive(PeerId from, const wire::Progress& progress);
  void receive(PeerId from, const wire::Lease& lease);
  void receive(PeerId from, const wire::Recall& recall);
  void receive(PeerId from, const wire::Plan& plan);
  void receive(PeerId from, const wire::Vote& vote);
  void receive(PeerId from, const wire::Prepare& prepare);
  void receive(PeerId from, const wire::Promise& promise);
  void receive(PeerId from, const wire::Commit& commit);
  void receive(PeerId from, const wire::StallReport& report);
  void receive(PeerId from, const wire::HandOver& order);
  void receive(PeerId from, const wire::Failures& failures);
  void receive(PeerId from, const wire::Stop& stop);

  void wake(Instant now);
  void dispatch(PeerId from, const wire::Message& message);
  void send(PeerId to, wire::Message message);
  void broadcast(const wire::Message& message);
  /// Not inlined: where it is, GCC 12 takes members of the other alternatives for used and uninitialised.
  [[gnu::noinline]] void ask_owner(Action action);
  void tell_peer_state();
  std::set<PeerId> in_front() const;
  Wait wait_for_the_beginning() const;
  void settle();  // own messages, the leader's part, and what follows from both
  void drive_lead();
  void hold_back();
  void consider_leading();
  Leading::View view() const;
  void hand_over_when_idle();
  void go_early();
  void consider_leaving();
  void found_when_all_are_here();
  void adopt(const wire::Record& record);
  void begin_round(bool again);
  void turn_away_squatters(const std::vector<wire::Member>& members);
  void turn_away(PeerId squatter);
  void report_changes(const wire::Record& record);
  void do_what_counts(PeerId leader, const wire::Contribution& own);
  void give_back_queued();
  void tell_failures(PeerId to);
  void out_of_step(std::string why, bool differs = false);
  bool differs_from(const wire::Record& next) const;
  void lose(PeerId peer, const std::string& why, Duration silent);
  bool is_overdue() const;
  void tick();
  void say_vote();

  bool takes_part() const { return part_.takes_part() && head(); }

  bool is_here(const wire::Member& member) const { return membership_.is_here(member); }

  const std::vector<wire::Member>& members() const;  // of the head

  bool of_this_round(Round round) const { return history_.is_next(round); }

  bool may_follow(PeerId from, Ballot ballot);
  wire::Heartbeat heartbeat_to(PeerId peer) const;
  bool is_knotted() const;
  wire::Progress progress() const;
  void send_progress(bool gave_back = false);
  void send_progress(bool gave_back, const std::vector<PeerId>& where_unled);

  Options options_;
  Instant now_;
  TellingTimes times_;
  Part part_;
  Farewell farewell_;
  bool run_is_over_ = false;  // a peer told of its last record
  History history_;
  Membership membership_;
  OwnWord own_;
  LastRound last_round_;
  Work work_{0};
  Acceptor acceptor_;
  Leading leading_;
  std::deque<wire::Message> own_messages_;
  wire::Outbox messages_;
  std::vector<Action> actions_;
  std::vector<world::Event> events_;
};

}  // namespace tw::swarm
