// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "swarm/lineage.h"
#include "swarm/quorum.h"
#include "swarm/soundness.h"
#include "swarm/swarm.h"
#include "wire/frame.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

/// After another member has taken the lead, it is left alone so long before this one tries again.
constexpr Duration kYield = 2s;
/// A member that was never linked yet (the mesh is still being knotted) counts as alive so long after a
/// decision.
constexpr Duration kMeshing = 2s;
/// For a member's own process to be linked, before another one that has its id: longer than the longest pause
/// between two dials, shorter than a joiner waits for an id that is taken.
constexpr Duration kSeatIsKept = 6s;

}  // namespace

// ---- messages
// -------------------------------------------------------------------------------------------------

void Swarm::receive(PeerId from, const Heartbeat& told) {
  Heartbeat heartbeat = told;
  const bool on_its_way =
      head() && told.standing == Standing::fresh && names(head()->members, roster_.process(from));
  if (on_its_way)
    heartbeat.standing = Standing::member;  // said before the record that made it one had arrived
  const bool was_behind = roster_.is_behind(from);
  roster_.heard(now_, from, heartbeat);
  holdback_.heard(now_, from, heartbeat);
  detector_.expect(from, std::chrono::milliseconds(told.next_ms));
  if (was_behind && !roster_.is_behind(from)) resends_.ask(now_, from);
  if (resends_.take_due(now_, from)) decisions_.push_back(SendAgain{from});
  const bool at_the_end = head() && head()->last && heartbeat.head_record == history_.digest();
  if (at_the_end && is_member(head()->members, from)) at_the_end_.insert(from);
  if (heartbeat.echo_ns != 0) {
    const std::uint64_t left = heartbeat.echo_ns + heartbeat.echo_delay_ns;
    const std::uint64_t elapsed = static_cast<std::uint64_t>(now_.time_since_epoch().count()) - left;
    detector_.round_trip(from, Duration{static_cast<std::int64_t>(elapsed)});
  }
  const bool has_history = heartbeat.standing != Standing::fresh && heartbeat.standing != Standing::syncing;
  if (standing_ == Standing::fresh && has_history) {
    out_of_step("the run is at round " + std::to_string(heartbeat.head));
    return;
  }
  if (!takes_part() || !has_history) return;
  // A peer that missed the decision is told it, and so is one whose history gives way to this one.
  if (goes_before(history_.rank(), rank_of(heartbeat))) send(from, Commit{*head()});
}

void Swarm::receive(PeerId from, const Peers& peers) {
  for (const Member& m : peers.peers) {
    const bool has_the_id_of_another =
        head() && is_member(head()->members, m.peer) && !names(head()->members, m);
    if (!has_the_id_of_another) roster_.hear(from, m);
  }
}

void Swarm::receive(PeerId from, const Progress& progress) {
  if (!is_sound(progress, options_.lease)) return;
  if (!head() && progress.round == 0 && history_.parameters() &&
      progress.parameters == *history_.parameters())
    fresh_.insert(from);
  if (!lead_) return;
  lead_->on_progress(process(from), progress);
}

bool Swarm::may_follow(PeerId from, Ballot ballot) {
  if (!takes_part()) return false;
  const Acceptor::Answer answer = acceptor_.answer(head()->members, process(from), ballot);
  if (answer == Acceptor::Answer::bid_higher)
    send(from, Promise{acceptor_.promised(), progress(), std::nullopt, std::nullopt});
  return answer == Acceptor::Answer::follow;
}

void Swarm::receive(PeerId from, const Lease& lease) {
  if (!of_this_round(lease.round) || !may_follow(from, lease.ballot) || leaving_) return;
  const RangeSet all(Range{0, options_.lease.microbatches()});
  const bool sound = lease.slot < kMostSlots && !lease.microbatches.empty();
  if (!sound || !all.contains(lease.microbatches)) return;
  if (!work_.lease(lease.slot, lease.microbatches))
    out_of_step("the leader does not know what this peer has sent");
}

void Swarm::receive(PeerId from, const Recall& recall) {
  if (!of_this_round(recall.round) || !may_follow(from, recall.ballot)) return;
  work_.drop_queued();
  send_progress(true);
}

void Swarm::receive(PeerId from, const Plan& plan) {
  if (!history_.continues(plan.draft) || !may_follow(from, plan.ballot)) return;
  if (history_.parameters() && plan.draft.parameters != *history_.parameters()) {
    out_of_step("its parameters differ from those of the leader");
    return;
  }
  if (!fault_of(plan.draft, *head(), options_.lease).empty() || !acceptor_.take(plan)) return;
  if (called_at_ == kNever) called_at_ = now_;
  decisions_.push_back(Reduce{plan});
  for (const Contribution& c : plan.draft.contributors) {
    if (c.peer == options_.self.peer) do_what_counts(from, c);
  }
}

// What is missing of it was dropped on leaving, or its lease was lost.
void Swarm::do_what_counts(PeerId leader, const Contribution& own) {
  if (work_.has_other_than(own.slot, own.microbatches)) {
    send(leader, Report{head()->round + 1, own.peer, Complaint::owes_contribution});
  } else {
    work_.lease(own.slot, own.microbatches);
  }
}

void Swarm::receive(PeerId from, const Vote& vote) {
  if (lead_ && of_this_round(vote.round)) lead_->on_vote(from, vote);
}

void Swarm::receive(PeerId from, const Prepare& prepare) {
  if (!of_this_round(prepare.round) || !may_follow(from, prepare.ballot)) return;
  acceptor_.promise(prepare.ballot);
  work_.drop_queued();
  send(from, acceptor_.word(prepare.ballot, progress()));
}

void Swarm::receive(PeerId from, const Promise& promise) {
  if (lead_ && of_this_round(promise.progress.round) && is_sound(promise.progress, options_.lease))
    lead_->on_promise(from, promise);
}

void Swarm::receive(PeerId from, const Report& report) {
  if (report.complaint == Complaint::send_again) {
    if (report.suspect != options_.self.peer || !of_this_round(report.round)) return;
    resends_.ask(now_, from);
    if (resends_.take_due(now_, from)) decide(SendAgain{from});
    return;
  }
  if (lead_) lead_->on_report(from, report);
}

void Swarm::receive(PeerId, const Commit& commit) {
  const Record& record = commit.record;
  if (record.run != options_.run || record.members.empty() || ended_) return;
  const Rank told = rank_of(record);
  run_is_over_ = run_is_over_ || (record.last && (!head() || goes_before(told, history_.rank())));
  if (now_ - told_by_commit_at_ >= kCommitAlone || !goes_before(told_by_commit_, told)) {
    told_by_commit_ = told;
    told_by_commit_at_ = now_;
  }
  if (standing_ == Standing::fresh) {
    const bool begins =
        record.round == 0 && history_.parameters() && record.parameters == *history_.parameters();
    if (begins) {
      adopt(record);
      send_progress();
    }
    return;
  }
  if (standing_ == Standing::syncing || !head()) return;
  const History::News news = history_.judge(record, acceptor_.expected());
  if (news == History::News::old) return;
  if (news == History::News::other) {
    const std::string round = "round " + std::to_string(record.round);
    out_of_step(record.round > head()->round ? round + " was decided without this peer"
                                             : "another history goes before this one: its " + round);
    return;
  }
  if (called_at_ != kNever) {
    const Duration took = now_ - called_at_;
    expected_reduce_ = reduce_measured_ ? (3 * expected_reduce_ + took) / 4 : took;
    reduce_measured_ = true;
  }
  last_shares_ = acceptor_.plan()->shares;
  report_changes(record);
  waits_for_company_ = false;
  turn_away_squatters(record.members);
  history_.extend(record);
  begin_round(false);
  decisions_.push_back(Committed{record});
}

// ---- history
// --------------------------------------------------------------------------------------------------

void Swarm::report_changes(const Record& record) {
  if (record.members == head()->members) return;
  for (const Member& m : record.members) {
    if (!names(head()->members, m)) events_.push_back({now_, Phase::join, record.round, m.peer});
  }
  for (const Member& m : head()->members) {
    const std::optional<Heartbeat> last = roster_.last_heartbeat(m.peer);
    const bool left = m.is(options_.self) ? leaving_ : last && last->standing == Standing::leaving;
    if (left && !names(record.members, m)) events_.push_back({now_, Phase::leave, record.round, m.peer});
  }
}

// Disconnects a process that uses a member's id with another incarnation: it gets the member's messages. It
// stays out for as long as the member, if it lives, takes to be linked again.
void Swarm::turn_away_squatters(const std::vector<Member>& members) {
  const bool others = head() && head()->members != members;
  for (const Member& m : members) {
    if (others && is_member(head()->members, m.peer) && !names(head()->members, m)) {
      const auto same_id = [&](const Member& old) { return old.peer == m.peer; };
      barred_.supersede(*std::ranges::find_if(head()->members, same_id));
    }
    if (roster_.is_open(m.peer) && !roster_.is_open(m)) turn_away(m.peer);
  }
}

void Swarm::turn_away(PeerId squatter) {
  barred_.turn_away(now_, now_ + kSeatIsKept, roster_.process(squatter));
  const std::string why = "another process takes part under this id";
  decisions_.push_back(Hangup{squatter, why});
  lose(squatter, why, Duration{});
}

void Swarm::on_taken(Instant now, const Member& caller, bool founds) {
  wake(now);
  if (!roster_.is_open(caller.peer) || roster_.is_open(caller)) return;
  const bool member = head() && names(head()->members, caller);
  // All who wait for the history to begin wait for the founder: another process under its id would keep it
  // from them.
  const bool awaited = founds && !head() && standing_ == Standing::fresh &&
                       !(founder_ && roster_.is_open(*founder_) && founder_->peer == caller.peer);
  if (member || awaited) turn_away(caller.peer);
}

bool Swarm::may_link(const Member& process) const {
  return (head() && names(head()->members, process)) || !barred_.bars(now_, process);
}

void Swarm::adopt(const Record& record) {
  turn_away_squatters(record.members);
  begin_round(history_.begin(record));
}

// again: the state was taken anew, and what was said of this round before is still in the world.
void Swarm::begin_round(bool again) {
  const Record& record = *head();
  head_since_ = now_;
  std::erase_if(lost_, [&](PeerId peer) { return !is_member(record.members, peer); });
  for (const Member& m : record.members) {
    roster_.learn(m);
    roster_.now_follows(m);
  }
  const bool member = names(record.members, options_.self);
  if (!member && leaving_) {
    decisions_.push_back(Ended{"left after round " + std::to_string(record.round)});
    ended_ = true;
  }
  standing_ = !member ? Standing::ready : leaving_ ? Standing::leaving : Standing::member;
  lead_.reset();
  resends_.begin_round();
  called_at_ = kNever;
  acceptor_.begin_round(again);
  if (again) {
    work_.start_over();
    return;
  }
  work_ = Work(record.round + 1);
  at_the_end_.clear();
  lead_again_at_ = {};
}

void Swarm::out_of_step(std::string why) {
  if (standing_ == Standing::syncing || ended_) return;
  standing_ = Standing::syncing;
  lead_.reset();
  tell_standing();
  decisions_.push_back(CatchUp{std::move(why)});
}

void Swarm::found_when_all_are_here() {
  if (!options_.founder || standing_ != Standing::fresh || !history_.parameters()) return;
  if ((options_.returns && !goes_on_alone_) || fresh_.size() + 1 < options_.wait_for) return;
  std::vector<Member> members = {options_.self};
  for (PeerId peer : fresh_) members.push_back(roster_.process(peer));
  Record record = genesis(options_.run, *history_.parameters(), std::move(members));
  record.minority = options_.returns;
  if (record.minority) record.awaited = {kUnknownPeer};
  broadcast(Commit{record});
  adopt(record);
  send_progress();
}

// ---- leading
// --------------------------------------------------------------------------------------------------

bool Swarm::takes_part() const {
  const bool follows =
      standing_ == Standing::ready || standing_ == Standing::member || standing_ == Standing::leaving;
  return follows && head() && !ended_;
}

Member Swarm::process(PeerId peer) const {
  return peer == options_.self.peer ? options_.self : roster_.process(peer);
}

bool Swarm::is_here(const Member& member) const {
  return member.is(options_.self) || roster_.follows(member);
}

std::optional<PeerId> Swarm::leader() const {
  if (!head() || head()->members.empty()) return std::nullopt;
  const Member& owner = ballot_owner(head()->members, acceptor_.promised());
  if (is_here(owner)) return owner.peer;
  const auto first = std::find_if(head()->members.begin(), head()->members.end(),
                                  [&](const Member& m) { return is_here(m); });
  return first == head()->members.end() ? std::nullopt : std::optional(first->peer);
}

bool Swarm::presumed_live(PeerId peer) const {
  return !roster_.is_open(peer) && !lost_.contains(peer) && now_ - head_since_ < kMeshing;
}

// A joiner gets work when whoever reduces it can be reached.
bool Swarm::is_knotted() const {
  if (standing_ != Standing::ready || now_ - head_since_ >= kMeshing) return true;
  return std::ranges::all_of(head()->members, [&](const Member& m) { return is_here(m); });
}

void Swarm::consider_leading() {
  const bool member = standing_ == Standing::member || standing_ == Standing::leaving;
  if (lead_ || ended_ || !member || now_ < lead_again_at_ || head()->last) return;
  const auto first = std::find_if(head()->members.begin(), head()->members.end(),
                                  [&](const Member& m) { return is_here(m) || presumed_live(m.peer); });
  // Those who promised this peer to follow it wait for it, whoever else is here.
  const bool awaited =
      acceptor_.promised() > 0 && ballot_owner(head()->members, acceptor_.promised()).is(options_.self);
  const bool its_turn = first != head()->members.end() && first->is(options_.self);
  if (!its_turn && !awaited) return;
  const bool is_first = its_turn && first == head()->members.begin();
  const Ballot ballot = acceptor_.bid(head()->members, options_.self, is_first);
  // A run that begins anew from a checkpoint waits for company as one that begins from nothing does.
  const std::uint32_t wait_for = waits_for_company_ ? options_.wait_for : 0;
  lead_.emplace(
      Lead::Options{options_.self, options_.lease, options_.segments, options_.rounds, wait_for,
                    options_.patience, expected_reduce_, options_.shares, options_.rarely, last_shares_},
      *head(), ballot, now_);
  Event event{now_, Phase::lead, head()->round + 1};
  event.numbers = {{"ballot", ballot}};
  events_.push_back(std::move(event));
  lead_knows_ = roster_.version();
  lead_->hold_back_for(held_back_for_);
  lead_->set_live(now_, live());
  if (ballot == 0) send_progress();
}

Lead::Live Swarm::live() const {
  Lead::Live all = roster_.following();
  all[options_.self.peer] = options_.self.incarnation;
  return all;
}

void Swarm::leave_a_lost_lead() {
  if (!lead_ || (acceptor_.promised() <= lead_->ballot() && !lead_->resigned())) return;
  if (!lead_->resigned()) lead_again_at_ = now_ + kYield;
  acceptor_.outbid(lead_->outbid());
  lead_.reset();
}

// Every member looks at them, so that whoever takes over the lead knows since when they are waited for.
void Swarm::hold_back() {
  holdback_.step(now_);
  const std::vector<PeerId> before = std::exchange(held_back_for_, holdback_.peers());
  if (!lead_) return;
  for (PeerId peer : held_back_for_) {
    if (std::ranges::find(before, peer) != before.end()) continue;
    events_.push_back({now_, Phase::wait, head()->round + 1, peer,
                       "it lost ground twice: no leases go out before it has the state of the run"});
  }
  lead_->hold_back_for(held_back_for_);
}

void Swarm::drive_lead() {
  hold_back();
  if (!lead_) return;
  if (end_run_) lead_->end_run();
  if (std::exchange(lead_knows_, roster_.version()) != roster_.version()) lead_->set_live(now_, live());
  lead_->step(now_);
  for (Envelope& envelope : lead_->take_messages()) send(envelope.to, std::move(envelope.message));
  for (Event& event : lead_->take_events()) events_.push_back(std::move(event));
  if (!lead_->committed()) return;
  const Commit commit{*lead_->committed()};
  lead_.reset();
  broadcast(commit);
  send(options_.self.peer, commit);
}

void Swarm::consider_leaving() {
  if (!leaving_ || ended_) return;
  if (takes_part() && standing_ == Standing::leaving) {
    for (const Member& m : head()->members) {
      if (m.is(options_.self) || !is_here(m)) continue;
      const std::optional<Heartbeat> last = roster_.last_heartbeat(m.peer);
      if (!last || last->standing != Standing::leaving) return;
    }
  }
  ended_ = true;
  decisions_.push_back(Ended{"left"});
}

void Swarm::settle() {
  found_when_all_are_here();
  do {
    while (!own_messages_.empty()) {
      const Message message = std::move(own_messages_.front());
      own_messages_.pop_front();
      dispatch(options_.self.peer, message);
    }
    leave_a_lost_lead();
    consider_leading();
    drive_lead();
  } while (!own_messages_.empty() || (lead_ && lead_->resigned()));
  consider_leaving();
}

}  // namespace tw
