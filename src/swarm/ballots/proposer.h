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

/// A leader's side of the decision of one round under one ballot: promises gathered, what they bind the
/// ballot to, plans numbered, votes counted, the decision. A value that knows neither clock nor socket; one
/// thread.
///
/// One instance of Paxos among the members of the record before: a plan is a proposal with the number
/// (ballot, version), a vote its acceptance. A proposer never goes back to an older version of its own; under
/// a later ballot a majority is asked first, and the newest plan that any of them voted for is finished.
/// Within a ballot a new version replaces a plan only while the old one is not decided, which nobody but this
/// proposer can do. Safety does not depend on who is taken to be here, only progress does.
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

  /// Those that can be reached and are not left out of the round, the leader included: they are waited for,
  /// and their votes count.
  void set_here(Processes here) { here_ = std::move(here); }

  /// It gave its seat away: it promises and votes no more, but is to say what it did.
  void expect_no_vote(PeerId peer) { silent_.insert(peer); }

  // ---- promises
  enum class Heard {
    nothing,  ///< of another ballot that is lower, or of no member
    outbid,   ///< a higher ballot is followed: this one can lead to nothing any more
    late,     ///< of this ballot, but it is not preparing
    counted,
  };

  /// `from`: the process that sent it. A process that came back under the id of a member has forgotten what
  /// that member voted for.
  Heard on_promise(const wire::Member& from, const wire::Promise& promise);

  /// A later word of a member that has promised.
  void refresh(PeerId from, const wire::Progress& progress);

  const std::map<PeerId, wire::Promise>& promises() const { return promises_; }

  bool has_promised(PeerId peer) const { return promises_.contains(peer); }

  enum class Start {
    waits,  ///< for promises
    open,   ///< nobody that promised has voted for anything
    bound,  ///< to the newest plan that was voted for; keepers() have its mean
    stuck,  ///< nobody that voted for it is here: the ballot has resigned
    lost,   ///< those that voted for it are here, and have lost its mean: it waits for one that has it
  };

  /// preparing -> open or bound, once all members that are here have promised and are a majority. `minority`:
  /// few may do, and a plan whose mean is lost may be given up; the record says so.
  Start begin(bool minority);

  /// The newest plan that was voted for cannot be finished: nobody that is here has its mean. Without it this
  /// ballot decides as few do, since the plan may be decided elsewhere.
  bool lacks_mean() const;

  /// The plan that has to be finished, if any: contributions stay as they are, and
  /// members too, unless few decide.
  const std::optional<wire::Accepted>& bound() const { return bound_; }

  /// The live peers that have the mean of the plan that has to be finished.
  const std::set<PeerId>& keepers() const { return keepers_; }

  // ---- plans
  /// Numbers the plan; votes for plans before it count no more.
  const wire::Plan& propose(wire::Plan plan);

  /// proposed -> open: nobody has voted, and another set of contributions is needed.
  void reopen();

  /// The last one that was proposed, if any.
  const SharedPlan& plan() const { return plan_; }

  // ---- votes
  /// True when it counts.
  bool on_vote(const wire::Member& from, const wire::Vote& vote);

  bool has_vote(PeerId peer) const { return votes_.contains(peer); }

  std::size_t votes() const { return votes_.size(); }

  /// Those that are here and voted for the present plan.
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
  /// A higher ballot is followed by somebody.
  void outbid_by(Ballot ballot);

  /// The highest ballot that somebody was found to follow.
  Ballot outbid() const { return outbid_; }

  void resign() { resigned_ = true; }

  /// This ballot can lead to nothing any more: lead again with one above outbid().
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
