// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "base/text/printable.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"
#include "swarm/swarm.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::PeerState;

}  // namespace

// ---- messages
// -------------------------------------------------------------------------------------------------

void Swarm::receive(PeerId from, const wire::Heartbeat& told) {
  const wire::Heartbeat heartbeat = membership_.on_heartbeat(now_, from, told, history_);
  if (Lead* lead = leading_.lead()) lead->on_heartbeat(from, heartbeat);
  if (membership_.take_resend(now_, from)) ask_owner(SendAgain{from});
  const bool has_history =
      heartbeat.peer_state != PeerState::fresh && heartbeat.peer_state != PeerState::syncing;
  if (peer_state() == PeerState::fresh && has_history) {
    out_of_step("the run is at round " + std::to_string(heartbeat.head));
    return;
  }
  if (!takes_part() || !has_history) return;
  // A peer that missed the decision, or whose history gives way to this one, is told the record.
  if (goes_before(history_.rank(), rank_of(heartbeat))) send(from, wire::Commit{*head()});
}

void Swarm::receive(PeerId from, const wire::Peers& peers) {
  membership_.on_peers(from, peers.peers, members());
}

void Swarm::receive(PeerId from, const wire::Progress& progress) {
  if (!is_sound(progress, options_.lease)) return;
  membership_.on_progress(from, progress);
  const bool waits_for_the_beginning = !head() && progress.round == 0 && history_.parameters();
  if (waits_for_the_beginning &&
      (options_.founders_parameters || progress.parameters == *history_.parameters()))
    membership_.on_fresh(from);
  if (Lead* lead = leading_.lead()) lead->on_progress(membership_.process(from), progress);
}

bool Swarm::may_follow(PeerId from, Ballot ballot) {
  if (!takes_part()) return false;
  const Acceptor::Answer answer = acceptor_.answer(head()->members, membership_.process(from), ballot);
  if (answer == Acceptor::Answer::bid_higher)
    send(from, wire::Promise{acceptor_.promised(), progress(), std::nullopt, std::nullopt});
  return answer == Acceptor::Answer::follow;
}

void Swarm::receive(PeerId from, const wire::Lease& lease) {
  if (!of_this_round(lease.round) || !may_follow(from, lease.ballot) || part_.leaves()) return;
  if (!work_.is_news(lease.ballot, lease.number)) return;
  const RangeSet all(Range{0, options_.lease.microbatches()});
  const bool sound = lease.slot < wire::kLeaseSlots && !lease.microbatches.empty();
  if (!sound || !all.contains(lease.microbatches)) return;
  if (!work_.lease(lease.slot, lease.microbatches))
    return out_of_step("the leader does not know what this peer has sent");
  if (own_.is_here() || acceptor_.stage() != Acceptor::Stage::idle) return;
  work_.drop_queued();  // the lease came after this peer became busy: others get it
  send_progress(true);
}

void Swarm::receive(PeerId from, const wire::Recall& recall) {
  if (!of_this_round(recall.round) || !may_follow(from, recall.ballot)) return;
  if (!work_.is_news(recall.ballot, recall.number)) return;
  work_.drop_queued();
  send_progress(true);
}

void Swarm::receive(PeerId from, const wire::Plan& plan) {
  if (!history_.continues(plan.draft) || !may_follow(from, plan.ballot)) return;
  if (history_.parameters() && plan.draft.parameters != *history_.parameters()) {
    out_of_step("its parameters differ from those of the leader", true);
    return;
  }
  if (!fault_of(plan.draft, *head(), options_.lease).empty() || !acceptor_.take(plan)) return;
  last_round_.called(now_);
  farewell_.call_off();
  ask_owner(Reduce{acceptor_.plan()});
  for (const wire::Contribution& c : plan.draft.contributors) {
    if (c.peer == options_.self.peer) do_what_counts(from, c);
  }
}

// The rest was dropped on leaving, or its lease was lost. When a busy peer will compute it is unknown.
void Swarm::do_what_counts(PeerId leader, const wire::Contribution& own) {
  const bool must_be_there =
      !own_.is_here() || own.slot >= wire::kLeaseSlots;  // sums of others are not made here
  const bool lacks_it = must_be_there && !work_.has_done_just(own.slot, own.microbatches);
  if (lacks_it || work_.has_other_than(own.slot, own.microbatches)) {
    send(leader, wire::StallReport{{head()->round + 1}, own.peer, wire::StallCause::owes_contribution});
  } else {
    work_.lease(own.slot, own.microbatches);
  }
}

void Swarm::receive(PeerId from, const wire::Vote& vote) {
  if (leads() && of_this_round(vote.step.round)) leading_.lead()->on_vote(from, vote);
}

void Swarm::receive(PeerId from, const wire::Prepare& prepare) {
  if (!of_this_round(prepare.round) || !may_follow(from, prepare.ballot)) return;
  acceptor_.promise(prepare.ballot);
  work_.drop_queued();
  tell_failures(from);
  send(from, acceptor_.word(prepare.ballot, progress()));
}

void Swarm::receive(PeerId from, const wire::Promise& promise) {
  if (!leads() || !of_this_round(promise.progress.round) || !is_sound(promise.progress, options_.lease))
    return;
  const auto& plan = promise.accepted;
  if (plan && !fault_of(plan->plan.draft, *head(), options_.lease).empty()) return;
  leading_.lead()->on_promise(from, promise);
}

void Swarm::receive(PeerId from, const wire::StallReport& report) {
  if (report.cause == wire::StallCause::send_again) {
    if (report.suspect != options_.self.peer || !of_this_round(report.step.round)) return;
    membership_.ask_again(now_, from);
    if (membership_.take_resend(now_, from)) ask_owner(SendAgain{from});
    return;
  }
  if (Lead* lead = leading_.lead()) lead->on_report(from, report);
}

void Swarm::receive(PeerId from, const wire::Failures& failures) {
  if (leads() && is_sound(failures, options_.lease)) leading_.lead()->on_failures(from, failures);
}

// From a peer that followed the run longer than this one, or as long; or from this one as the leader.
void Swarm::receive(PeerId from, const wire::Stop& stop) {
  const bool counts =
      from == options_.self.peer || !takes_part() || names(members(), membership_.process(from));
  if (part_.ended() || !counts || (head() && stop.round <= head()->round)) return;
  part_.end();
  leading_.end();
  ask_owner(Ended{printable_line(stop.why.substr(0, 2 * wire::kMostFailureBytes)), true});
}

void Swarm::receive(PeerId, const wire::Commit& commit) {
  const wire::Record& record = commit.record;
  if (record.run != options_.run || record.members.empty() || part_.ended()) return;
  const wire::Rank told = rank_of(record);
  run_is_over_ = run_is_over_ || (record.last && (!head() || goes_before(told, history_.rank())));
  membership_.on_commit(now_, told);
  if (peer_state() == PeerState::fresh) {
    const bool begins =
        record.round == 0 && history_.parameters() && record.parameters == *history_.parameters();
    if (begins) {
      adopt(record);
      send_progress();
    } else if (record.round == 0 && history_.parameters() && options_.founders_parameters) {
      out_of_step("the run begins with the parameters of its founder");
    }
    return;
  }
  if (peer_state() == PeerState::syncing || !head()) return;
  const History::News news = history_.judge(record, acceptor_.expected());
  if (news == History::News::old) return;
  if (news == History::News::other && differs_from(record)) {
    return out_of_step(
        "its parameters differ from those with which round " + std::to_string(record.round) + " began", true);
  }
  if (news == History::News::other) {
    const std::string round = "round " + std::to_string(record.round);
    out_of_step(record.round > head()->round ? round + " was decided without this peer"
                                             : "another history goes before this one: its " + round);
    return;
  }
  TW_CHECK(acceptor_.stage() == Acceptor::Stage::complete && takes_part());
  last_round_.decided(now_, acceptor_.plan()->shares);
  report_changes(record);
  part_.decided();
  turn_away_squatters(record.members);
  history_.extend(record);
  ask_owner(Committed{record});
  begin_round(false);
}

// ---- history
// --------------------------------------------------------------------------------------------------

void Swarm::report_changes(const wire::Record& record) {
  if (record.members == head()->members) return;
  for (const wire::Member& m : record.members) {
    if (!names(head()->members, m)) events_.push_back({now_, world::Phase::join, record.round, m.peer});
  }
  for (const wire::Member& m : head()->members) {
    if (membership_.stances().of(m.peer).leaving && !names(record.members, m))
      events_.push_back({now_, world::Phase::leave, record.round, m.peer});
  }
}

// Disconnects a process that uses a member's id with another incarnation: it would get the member's messages.
// It is barred for as long as the member, if alive, may take to link again.
void Swarm::turn_away_squatters(const std::vector<wire::Member>& members) {
  for (PeerId squatter : membership_.squatters(this->members(), members)) {
    if (roster().is_open(squatter)) turn_away(squatter);
  }
}

void Swarm::turn_away(PeerId squatter) {
  membership_.bar(now_, squatter);
  ask_owner(Hangup{squatter});
  lose(squatter, "another process takes part under this id", Duration{});
}

void Swarm::on_taken(Instant now, const wire::Member& caller, bool founds) {
  wake(now);
  if (!roster().is_open(caller.peer) || roster().is_open(caller)) return;
  const bool member = head() && names(head()->members, caller);
  // Every peer that waits for the beginning waits for the founder: another process under its id would keep it
  // away.
  const bool awaited =
      founds && !head() && peer_state() == PeerState::fresh && !membership_.has_founder(caller.peer);
  if (member || awaited) turn_away(caller.peer);
}

void Swarm::adopt(const wire::Record& record) {
  TW_CHECK(!leads());
  turn_away_squatters(record.members);
  begin_round(history_.begin(record));
}

// again: the state was taken anew, and promises and votes of this round still stand.
void Swarm::begin_round(bool again) {
  const wire::Record& record = *head();
  membership_.begin_round(now_, record);
  const bool member = names(record.members, options_.self);
  if (!member && part_.leaves()) {
    ask_owner(Ended{"left after round " + std::to_string(record.round)});
    part_.end();
  }
  part_.follow(member);
  TW_CHECK(part_.is_member() == member);
  leading_.end();
  last_round_.begin_round();
  acceptor_.begin_round(again);
  if (!again) farewell_.begin_round();
  if (again) {
    work_.start_over();
    return;
  }
  work_ = Work(record.round + 1);
  leading_.begin_round();
}

// A leader leaves such a peer out of its plans, so that no plan tells it. The mean of the round would not
// help.
bool Swarm::differs_from(const wire::Record& next) const {
  return history_.continues(next) && history_.parameters() && next.parameters != *history_.parameters();
}

void Swarm::out_of_step(std::string why, bool differs) {
  if (peer_state() == PeerState::syncing || part_.ended()) return;
  part_.fall_behind();
  leading_.end();
  tell_peer_state();
  ask_owner(CatchUp{std::move(why), differs});
}

void Swarm::found_when_all_are_here() {
  if (!options_.founder || peer_state() != PeerState::fresh || !history_.parameters()) return;
  const std::set<PeerId>& fresh = membership_.fresh();
  if (part_.outset() == Part::Outset::awaits_others || fresh.size() + 1 < options_.wait_for) return;
  if (!membership_.has_asked_all()) return;  // the run may have begun there
  std::vector<wire::Member> members = {options_.self};
  for (PeerId peer : fresh) members.push_back(roster().process(peer));
  // If all others take the founder's state, only the founder can lead at first.
  if (!options_.founders_parameters) put_first(anchors(), members);
  wire::Record record = genesis(options_.run, *history_.parameters(), std::move(members));
  record.minority = options_.returns;
  if (record.minority) record.awaited = {kUnknownPeer};
  broadcast(wire::Commit{record});
  if (options_.founders_parameters) membership_.take_the_first_state(now_, record.members);
  adopt(record);
  send_progress();
}

// ---- leading
// --------------------------------------------------------------------------------------------------

std::optional<PeerId> Swarm::leader() const { return leader_of(history_, membership_, acceptor_); }

// A joiner gets work once all peers that reduce it can be reached.
bool Swarm::is_knotted() const {
  return peer_state() != PeerState::ready || membership_.is_meshed(now_, members());
}

void Swarm::consider_leading() {
  const std::optional<Ballot> ballot = leading_.consider(view(), acceptor_);
  if (!ballot) return;
  world::Event event{now_, world::Phase::lead, head()->round + 1};
  event.numbers = {{"ballot", *ballot}};
  events_.push_back(std::move(event));
  if (*ballot == 0) send_progress();
}

// Every member keeps this list, so that a new leader knows since when joiners are waited for.
void Swarm::hold_back() {
  const std::vector<PeerId> added = membership_.hold_back(now_);
  if (!leads()) return;
  for (PeerId peer : added) {
    events_.push_back({now_, world::Phase::wait, head()->round + 1, peer,
                       "no leases go out before it has the state of the run"});
  }
  leading_.lead()->hold_back_for(membership_.held_back_for());
}

void Swarm::drive_lead() {
  hold_back();
  if (!leads()) return;
  leading_.step(view());
  Lead& lead = *leading_.lead();
  for (wire::Envelope& envelope : lead.take_messages()) send(envelope.to, std::move(envelope.message));
  for (world::Event& event : lead.take_events()) events_.push_back(std::move(event));
  if (!lead.hopeless().empty()) {
    const wire::Stop stop{head()->round + 1, lead.hopeless()};
    broadcast(stop);
    return receive(options_.self.peer, stop);
  }
  if (!lead.committed()) return;
  TW_CHECK(history_.is_next(lead.committed()->round));
  const wire::Commit commit{*lead.committed()};
  leading_.end();
  broadcast(commit);
  send(options_.self.peer, commit);
}

void Swarm::settle() {
  found_when_all_are_here();
  do {
    while (!own_messages_.empty()) {
      const wire::Message message = std::move(own_messages_.front());
      own_messages_.pop_front();
      dispatch(options_.self.peer, message);
    }
    leading_.leave_a_lost_one(view(), acceptor_);
    consider_leading();
    drive_lead();
  } while (!own_messages_.empty() || (leads() && leading_.lead()->resigned()));
  hand_over_when_idle();
  consider_leaving();
}

}  // namespace tw::swarm
