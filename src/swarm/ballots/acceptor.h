// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "swarm/ballots/shared_plan.h"
#include "wire/messages.h"

namespace tw::swarm {

/// A member's side of the decision of one round: which ballots it still follows, the plan whose mean it waits
/// for, what it voted for, and which ballots it leads with itself. A value that knows neither clock nor
/// socket; one thread. It is that of Paxos: a promise never falls, and a vote is never below a promise or an
/// earlier vote.
class Acceptor {
 public:
  enum class Stage {
    idle,       ///< there is no plan
    averaging,  ///< the mean of plan() is awaited
    complete,   ///< the whole mean of plan() is here
    again,      ///< what was averaged of plan() is lost: the same plan may be taken once more
  };

  Stage stage() const { return stage_; }

  /// The plan is being averaged, or is averaged, here.
  bool averages() const { return stage_ == Stage::averaging || stage_ == Stage::complete; }

  /// Lower ballots than this one are not followed.
  Ballot promised() const { return promised_; }

  /// The latest one that was taken, if any.
  const SharedPlan& plan() const { return plan_; }

  /// The latest one that was voted for.
  std::optional<wire::Accepted> accepted() const;

  enum class Answer {
    follow,
    bid_higher,  ///< its ballot was overtaken: it has to be told promised()
    ignore,      ///< the ballot belongs to another process
  };

  /// What to do with a message that `from` sent as the leader of this ballot. `members`: of the record
  /// before.
  Answer answer(const std::vector<wire::Member>& members, const wire::Member& from, Ballot ballot) const;

  /// Prepare: from now on no lower ballot is followed.
  void promise(Ballot ballot);

  /// This member votes for one that left, too, which promised so much and voted for nothing in this round:
  /// what is voted from now on counts for both.
  void take_seat(PeerId of, Ballot promised);

  /// Not after a vote in this round: a later ballot has to hear of it, and the keeper of a seat knows none.
  bool may_give_seat() const { return !accepted_; }

  /// The members that left and gave their seats to this peer.
  const std::vector<PeerId>& seats() const { return seats_; }

  /// The answer to the Prepare of this ballot, once it is promised. It says in progress.called whether the
  /// mean that was voted for is still here.
  wire::Promise word(Ballot ballot, wire::Progress progress) const;

  /// A plan of a leader that is followed: true when it replaces the present one.
  bool take(const wire::Plan& plan);

  /// The whole mean of the present plan is here.
  void complete(const Digest& mean);

  /// The vote for the present plan, as often as it is asked for. Nothing before its mean is here, or once a
  /// higher ballot was promised.
  std::optional<wire::Vote> vote();

  /// What the present plan becomes when it is decided. Nothing before its mean is here.
  std::optional<wire::Record> expected() const;

  /// Another round begins: nothing was said of it. again: it is the same one, whose state was taken anew.
  /// Then what was promised and voted for stands, and take() takes the present plan once more, since what was
  /// averaged of it is lost.
  void begin_round(bool again);

  /// The ballot with which this member leads next: the lowest of its own above all that it promised, led or
  /// was outbid by. `first`: no member before it is here; then it begins with ballot 0, which needs no
  /// promises. No ballot is led twice.
  Ballot bid(const std::vector<wire::Member>& members, const wire::Member& self, bool first);

  /// Somebody follows this ballot.
  void outbid(Ballot ballot);

 private:
  struct Vow {
    SharedPlan plan;
    Digest mean;
  };

  void enter(Stage next);

  Stage stage_ = Stage::idle;
  Ballot promised_ = 0;
  SharedPlan plan_;
  std::optional<Digest> mean_;  // of plan_
  std::optional<Vow> accepted_;
  bool keeps_accepted_ = false;  // the mean of accepted_ is here; not so once the state was taken anew
  std::vector<PeerId> seats_;
  std::optional<Ballot> led_;  // highest that was led, or that others were found to follow
};

}  // namespace tw::swarm
