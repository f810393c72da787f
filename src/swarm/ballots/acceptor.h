// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "swarm/ballots/shared_plan.h"
#include "wire/messages.h"

namespace tw::swarm {

/// A member's side of the decision of one round, as in Paxos: the ballots that it follows, the plan whose
/// mean it waits for, its vote, and the ballots that it leads. A promise never falls, and a vote is never
/// below a promise or an earlier vote. A value that knows neither clock nor socket; one thread.
class Acceptor {
 public:
  enum class Stage {
    idle,       ///< there is no plan
    averaging,  ///< the mean of plan() is awaited
    complete,   ///< the whole mean of plan() is here
    again,      ///< what was averaged of plan() is lost: the same plan may be taken once more
  };

  Stage stage() const { return stage_; }

  /// This peer averages the plan, or has its mean.
  bool averages() const { return stage_ == Stage::averaging || stage_ == Stage::complete; }

  /// Lower ballots than this one are not followed.
  Ballot promised() const { return promised_; }

  /// The latest plan that was taken, if any.
  const SharedPlan& plan() const { return plan_; }

  /// The latest plan that was voted for.
  std::optional<wire::Accepted> accepted() const;

  enum class Answer {
    follow,
    bid_higher,  ///< its ballot was overtaken: tell it promised()
    ignore,      ///< the ballot belongs to another process
  };

  /// The answer to a message that `from` sent as the leader of this ballot. `members`: of the record before.
  Answer answer(const std::vector<wire::Member>& members, const wire::Member& from, Ballot ballot) const;

  /// On Prepare: from now on no lower ballot is followed.
  void promise(Ballot ballot);

  /// From now on this member's votes count for `of`, too, which left. `promised`: what `of` had promised; it
  /// had not voted in this round.
  void take_seat(PeerId of, Ballot promised);

  /// False after a vote in this round: later ballots have to hear of it, and a seat's keeper cannot tell
  /// them.
  bool may_give_seat() const { return !accepted_; }

  /// The members that left and gave their seats to this peer.
  const std::vector<PeerId>& seats() const { return seats_; }

  /// The answer to the Prepare of this ballot, once it is promised. It says in progress.called whether the
  /// mean that was voted for is still here.
  wire::Promise word(Ballot ballot, wire::Progress progress) const;

  /// Takes a plan of a leader that is followed. True when it replaces the present one.
  bool take(const wire::Plan& plan);

  /// The whole mean of the present plan is here.
  void complete(const Digest& mean);

  /// The vote for the present plan; may be asked for repeatedly. Empty before the mean is here, and once a
  /// higher ballot was promised.
  std::optional<wire::Vote> vote();

  /// The record that the present plan becomes when it is decided. Empty before its mean is here.
  std::optional<wire::Record> expected() const;

  /// Another round begins, without promises or votes. again: it is the same round, whose state was taken
  /// anew. Then promises and votes stand, and take() takes the present plan once more, since its averaging is
  /// lost.
  void begin_round(bool again);

  /// The ballot with which this member leads next: its lowest one above all that it promised, led or was
  /// outbid by. `first`: no earlier member is here; then it begins with ballot 0, which needs no promises. No
  /// ballot is led twice.
  Ballot bid(const std::vector<wire::Member>& members, const wire::Member& self, bool first);

  /// Another member follows this ballot.
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
  bool keeps_accepted_ = false;  // the mean of accepted_ is here; false once the state was taken anew
  std::vector<PeerId> seats_;
  std::optional<Ballot> led_;  // highest ballot that was led, or that others follow
};

}  // namespace tw::swarm
