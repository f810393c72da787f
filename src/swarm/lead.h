// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rarely.h"
#include "base/time.h"
#include "swarm/ballots/proposer.h"
#include "swarm/leases/hand_overs.h"
#include "swarm/leases/leasing.h"
#include "swarm/members/peer_status.h"
#include "swarm/planning.h"
#include "swarm/straggler_policy.h"
#include "swarm/wait.h"
#include "swarm/wanted_settings.h"
#include "wire/outbox.h"
#include "world/events.h"

namespace tw::swarm {

/// The leader's side of one round under one ballot: leases, the call, exclusions (docs/protocol.md). The
/// Proposer decides what the ballot may propose and when it has decided, Planning how a plan divides the
/// vector.
class Lead {
 public:
  struct Options {
    wire::Member self;
    LeaseBook::Options lease;
    std::uint64_t segments = 0;
    Round rounds = 0;            ///< the run ends with this round
    std::uint32_t wait_for = 0;  ///< give no leases before this many peers are here
    Duration patience{};
    Duration expected_reduce{};  ///< recent time from call to commit
    DivisionOptions division{};
    Rarely rarely{};
    std::vector<wire::Share> shares_before{};  ///< of the last round
    std::uint64_t sum_bytes = 0;               ///< of a gradient sum that is handed over
    Stances stances{};                         ///< of peers, before this round
    Duration shortest_reduce{};                ///< of recent rounds; 0: not known
  };

  /// Ballot 0 belongs to the first member and needs no promises.
  Lead(Options options, const wire::Record& head, Ballot ballot, Instant now);
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

  Ballot ballot() const { return proposer_.ballot(); }

  /// The peers that can be reached now, with their incarnations, this one included. Members that vanish are
  /// out of the round. A process that comes back under a member's id is not that member. Anchors come first
  /// in the next record, so that they lead before others.
  using Live = PeerStatus::Live;
  void set_live(Instant now, const Live& live, std::set<PeerId> anchors = {});

  /// From any linked peer, and from this one. Where their threads are decides the order of the next record,
  /// and who is in it.
  void on_heartbeat(PeerId from, const wire::Heartbeat& told) { status_.hear(from, told); }

  /// From members, and from peers that want to become members.
  void on_progress(const wire::Member& from, const wire::Progress& progress);
  void on_promise(PeerId from, const wire::Promise& promise);
  void on_vote(PeerId from, const wire::Vote& vote);
  void on_report(PeerId from, const wire::StallReport& report);
  void on_failures(PeerId from, const wire::Failures& failures);

  /// Gives no leases before these joiners have the newest record (Holdback).
  void hold_back_for(std::vector<PeerId> joiners) { leasing_.hold_back_for(std::move(joiners)); }

  /// This round becomes the last one.
  void end_run();

  /// Lower bound in seconds of averaging by this plan; 0 when no bandwidth is known.
  double least_reduce_s(const wire::Plan& plan) const { return planning_.least_reduce_s(plan); }

  void step(Instant now);

  /// The decision, once there is one.
  const std::optional<wire::Record>& committed() const { return proposer_.decision(); }

  /// Why the run has to stop: no peer can compute a part of this round. Empty: it need not.
  const std::string& hopeless() const { return hopeless_; }

  const Proposer& proposer() const { return proposer_; }

  /// This ballot cannot succeed any more: lead again with a ballot above Proposer::outbid().
  bool resigned() const { return proposer_.resigned(); }

  wire::Outbox take_messages() { return std::exchange(messages_, {}); }

  std::vector<world::Event> take_events() { return std::exchange(events_, {}); }

  /// Size of what is kept about peers, in entries of a few machine words.
  std::size_t notes() const;

  /// The peers that this round waits for, and the reason; this peer itself if there is no other.
  Wait waiting() const;

 private:
  using Stage = Proposer::Stage;  // open: microbatches are leased; proposed: the plan is called

  bool finishes() const { return proposer_.bound().has_value(); }  // a plan of another leader

  void begin_when_promised();
  bool may_decide() const;
  void advance();
  void call();
  void propose(wire::Plan plan, bool again = false);
  void serve_sealed(wire::Plan plan, const std::set<PeerId>& keepers);
  void take_in(PeerId joiner);
  void commit_when_agreed();
  void propose_without_majority();
  void leave_out(PeerId peer, const std::string& why);
  void out(PeerId peer);
  void carry_out(const StragglerPolicy::Verdict& verdict);
  void relieve(PeerId slow, const RangeSet& moves);
  void give_out_again(PeerId peer);
  void report_reissue(const RangeSet& microbatches, std::optional<PeerId> lost);
  void send_leases();
  void let_leavers_go();
  void give_up_on_hopeless_work();
  std::vector<wire::Contribution> ahead_of(const wire::Record& draft) const;

  Options options_;
  wire::Record head_;
  Proposer proposer_;
  Instant now_;
  Leasing leasing_;
  PeerStatus status_;
  Planning planning_;
  StragglerPolicy stragglers_;
  HandOvers hand_overs_;
  WantedSettings settings_;
  Instant next_ask_{};
  Instant no_quorum_since_ = kNever;
  bool minority_ = false;
  SharedPlan called_;     // the newest plan of a former leader of this round, if any
  bool began_ = false;    // with the leases of the head
  bool last_ = false;     // the run ends with this round
  std::string hopeless_;  // empty: it is not
  wire::Outbox messages_;
  std::vector<world::Event> events_;
};

}  // namespace tw::swarm
