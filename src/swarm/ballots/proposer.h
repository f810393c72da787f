// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "swarm/ballots/shared_plan.h"
#include "wire/messages.h"

namespace tw::swarm {

/// A leader's side of the decision of one round under one ballot: promises and the plan they bind it to,
/// numbered plans, votes, the decision. A value that knows neither clock nor socket; one thread.
///
/// One instance of Paxos among the members of the record before: a plan is a proposal numbered (ballot,
/// version), a vote its acceptance. A proposer never goes back to an older version of its own. A later ballot
/// first asks a majority, then finishes the newest plan that any of them voted for. Within a ballot a new
/// version replaces a plan only before the old one is decided, which only this proposer can do. Only progress
/// depends on which peers are taken to be here; safety does not.
class Proposer {
 public:
  enum class Stage {
    preparing,  ///< members are asked what they voted for
    open,       ///< any plan may be proposed
    bound,      ///< bound() has to be proposed
    proposed,   ///< votes for plan() are counted
    decided,
  };

  /// For the round after `head`. Ballot 0 needs no promises.
  Proposer(const wire::Record& head, Ballot ballot);

  Stage stage() const { return stage_; }

  Ballot ballot() const { return ballot_; }

  /// Processes, by id with their incarnation.
  using Processes = std::map<PeerId, std::uint64_t>;

  /// Processes that can be reached and are not left out of the round, the leader included. They are waited
  /// for, and their votes count.
  void set_here(Processes here) { here_ = std::move(here); }

  /// The peer gave its seat away: it promises and votes no more, but still reports what it did.
  void expect_no_vote(PeerId peer) { silent_.insert(peer); }

  // ---- promises
  enum class Heard {
    nothing,  ///< of a lower ballot, or not from a member
    outbid,   ///< a higher ballot is followed: this one cannot succeed any more
    late,     ///< of this ballot, but it is not preparing
    counted,
  };

  /// `from`: the process that sent it. A process that came back under a member's id has forgotten the
  /// member's votes.
  Heard on_promise(const wire::Member& from, const wire::Promise& promise);

  /// Later progress of a member that has promised.
  void refresh(PeerId from, const wire::Progress& progress);

  const std::map<PeerId, wire::Promise>& promises() const { return promises_; }

  bool has_promised(PeerId peer) const { return promises_.contains(peer); }

  enum class Start {
    waits,  ///< for promises
    open,   ///< no member that promised has voted for anything
    bound,  ///< to the newest plan that was voted for; keepers() have its mean
    stuck,  ///< no peer that voted for it is here: the ballot has resigned
    lost,   ///< its voters are here but have lost its mean: it waits for one that has it
  };

  /// preparing -> open or bound, once all members that are here have promised and are a majority. `minority`:
  /// fewer suffice, and a plan whose mean is lost may be given up; the record says so.
  Start begin(bool minority);

  /// The newest plan that was voted for cannot be finished, since no peer here has its mean. Without that
  /// plan this ballot decides as a minority, since the plan may be decided elsewhere.
  bool lacks_mean() const;

  /// The plan that has to be finished, if any. Its contributions stay as they are, and so do its members
  /// unless a minority decides.
  const std::optional<wire::Accepted>& bound() const { return bound_; }

  /// The live peers that have the mean of the plan that has to be finished.
  const std::set<PeerId>& keepers() const { return keepers_; }

  // ---- plans
  /// Numbers the plan; votes for earlier plans do not count any more.
  const wire::Plan& propose(wire::Plan plan);

  /// proposed -> open: no peer has voted, and another set of contributions is needed.
  void reopen();

  /// The last plan that was proposed, if any.
  const SharedPlan& plan() const { return plan_; }

  // ---- votes
  /// True when the vote counts.
  bool on_vote(const wire::Member& from, const wire::Vote& vote);

  bool has_vote(PeerId peer) const { return votes_.contains(peer); }

  std::size_t votes() const { return votes_.size(); }

  /// Peers here that voted for the present plan.
  std::set<PeerId> voters() const;

  struct Count {
    enum class Outcome {
      waits,    ///< for votes of participants that are here
      differ,   ///< two means of one plan: `odd` is outvoted
      too_few,  ///< all alike, but they are no majority
      agreed,
    };

    Outcome outcome = Outcome::waits;
    PeerId odd{};
  };

  Count count() const;

  /// proposed -> decided; count() says agreed.
  void decide();

  const std::optional<wire::Record>& decision() const { return decision_; }

  // ---- the end of a ballot
  /// Another member follows a higher ballot.
  void outbid_by(Ballot ballot);

  /// The highest ballot that any member was found to follow.
  Ballot outbid() const { return outbid_; }

  void resign() { resigned_ = true; }

  /// This ballot cannot succeed any more: lead again with a ballot above outbid().
  bool resigned() const { return resigned_; }

 private:
  struct Voice {
    std::uint64_t incarnation = 0;
    Digest mean;
    std::vector<PeerId> seats;
  };

  bool is_here(const wire::Member& process) const;
  bool votes_were_lost(const wire::Accepted& accepted) const;
  bool has_quorum(const std::set<PeerId>& peers) const;
  std::set<PeerId> promised() const;
  std::set<PeerId> seats_of_votes() const;
  const wire::Accepted* newest_accepted() const;
  std::set<PeerId> keepers_of(const wire::Accepted& accepted) const;
  void enter(Stage next);

  std::vector<wire::Member> members_;
  Round round_;
  Ballot ballot_;
  Stage stage_;
  Processes here_;
  std::set<PeerId> silent_;
  std::map<PeerId, wire::Promise> promises_;
  std::optional<wire::Accepted> bound_;
  std::set<PeerId> keepers_;
  SharedPlan plan_;
  std::uint32_t version_ = 0;
  std::map<PeerId, Voice> votes_;  // for plan_
  std::optional<wire::Record> decision_;
  Ballot outbid_ = 0;
  bool resigned_ = false;
  bool gave_up_ = false;  // a plan that was voted for
};

}  // namespace tw::swarm
