// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/prng.h"
#include "base/text/printable.h"
#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::Member;
using wire::PeerState;

void lose(SwarmCore& core, PeerId peer, const std::string& why, Duration silent) {
  if (!core.membership.roster().is_open(peer)) return;
  const bool leaves = core.membership.stances().of(peer).leaving;
  core.membership.on_close(core.now, peer, core.members());
  if (leaves || !core.head() || core.head()->last) return;
  if (!names(core.members(), core.membership.roster().process(peer))) return;
  const Round round = core.head()->round + 1;
  core.outputs.report({.at = core.now,
                       .round = round,
                       .peer = peer,
                       .why = why,
                       .fact = event::Lost{.silent_s = to_seconds(silent)}});
  const std::optional<PeerId> leads = core.leader();
  if (core.takes_part() && leads && *leads != peer)
    core.send(*leads, wire::StallReport{{round}, peer, wire::StallCause::unreachable});
}

void turn_away(SwarmCore& core, PeerId squatter) {
  core.membership.bar(core.now, squatter);
  core.outputs.ask_owner(Hangup{squatter});
  lose(core, squatter, "another process takes part under this id", Duration{});
}

// Disconnects a process that uses a member's id with another incarnation: it would get the member's messages.
// It is barred for as long as the member, if alive, may take to link again.
void turn_away_squatters(SwarmCore& core, const std::vector<Member>& members) {
  for (PeerId squatter : core.membership.squatters(core.members(), members)) {
    if (core.membership.roster().is_open(squatter)) turn_away(core, squatter);
  }
}

void report_changes(SwarmCore& core, const wire::Record& record) {
  if (record.members == core.members()) return;
  for (const Member& m : record.members) {
    if (!names(core.members(), m)) core.outputs.report({core.now, record.round, m.peer, "", event::Join{}});
  }
  for (const Member& m : core.members()) {
    if (core.membership.stances().of(m.peer).leaving && !names(record.members, m))
      core.outputs.report({core.now, record.round, m.peer, "", event::Leave{}});
  }
}

// The round under way takes much longer than expected.
bool is_overdue(const SwarmCore& core) {
  return core.acceptor.averages() &&
         core.last_round.is_overdue(core.now, from_seconds(core.acceptor.plan()->expected_s));
}

// A leader leaves such a peer out of its plans, so that no plan tells it. The mean of the round would not
// help.
bool differs_from(const History& history, const wire::Record& next) {
  return history.continues(next) && history.parameters() && next.parameters != *history.parameters();
}

// With overlap: it does not have all leases with which the round begins, and others get them.
bool lacks_what_is_ahead(const SwarmCore& core) {
  return std::ranges::any_of(core.head()->ahead, [&](const wire::Contribution& c) {
    return c.peer == core.options.self.peer && !core.work.does_all_of(c.slot, c.microbatches);
  });
}

// The first record, if this peer founds the run and all are here.
std::optional<wire::Record> found_when_all_are_here(const SwarmCore& core) {
  const SwarmOptions& options = core.options;
  const std::optional<Digest>& parameters = core.history.parameters();
  if (!options.founder || core.part.peer_state() != PeerState::fresh || !parameters) return std::nullopt;
  const std::set<PeerId>& fresh = core.membership.fresh();
  if (core.part.outset() == Part::Outset::awaits_others || fresh.size() + 1 < options.wait_for)
    return std::nullopt;
  if (!core.membership.roster().has_asked_all()) return std::nullopt;  // the run may have begun there
  std::vector<Member> members = {options.self};
  for (PeerId peer : fresh) members.push_back(core.membership.process(peer));
  // If all others take the founder's state, only the founder can lead at first.
  if (!options.founders_parameters) put_first(core.anchors(), members);
  wire::Record record = genesis(options.run, *parameters, std::move(members));
  if (options.lease.chosen) record.batch = wire::BatchChoice{.next = options.lease.target_batch_size};
  record.minority = options.returns;
  if (record.minority) record.awaited = {kUnknownPeer};
  return record;
}

Wait wait_for_the_beginning(const SwarmCore& core) {
  Wait wait{Wait::Kind::company};
  const Membership& membership = core.membership;
  if (core.options.founder) {
    wait.total = core.options.wait_for;
    const std::set<PeerId>& fresh = membership.fresh();
    wait.done = std::min<std::size_t>(wait.total, fresh.size() + 1);
    wait.peers.assign(fresh.begin(), fresh.end());
    if (wait.done < wait.total) return wait;
    if (membership.roster().has_asked_all()) return {};
    wait.kind = Wait::Kind::answer;
  } else {
    wait.peers = membership.roster().open_peers();
    wait.kind = wait.peers.empty()              ? Wait::Kind::answer
                : membership.has_founder_here() ? Wait::Kind::beginning
                                                : Wait::Kind::founder;
  }
  return wait;
}

}  // namespace

Swarm::Swarm(Options options, Instant now)
    : core_(std::move(options), now),
      leading_(core_),
      announcing_(core_, leading_),
      following_(core_, announcing_),
      leaving_(core_, announcing_) {}

// ---- network

void Swarm::on_open(Instant now, const Member& peer, const wire::Marks& marks) {
  core_.wake(now);
  const bool to_all = core_.options.founder && !head();
  const std::vector<Member> others = core_.membership.introductions(peer.peer, core_.leader(), to_all);
  core_.membership.on_open(now, peer, marks);
  if (!others.empty()) core_.send(peer.peer, wire::Peers{others});
  core_.send(peer.peer, announcing_.heartbeat_to(peer.peer));
  settle();
}

void Swarm::on_close(Instant now, PeerId peer, const std::string& why) {
  core_.wake(now);
  lose(core_, peer, why, core_.membership.silence(now, peer));
  settle();
}

void Swarm::on_message(Instant now, PeerId from, const wire::Message& message) {
  core_.wake(now);
  core_.membership.on_sign_of_life(now, from);
  const Roster& roster = core_.membership.roster();
  const std::uint64_t version = roster.version();
  const PeerState before = peer_state();
  dispatch(from, message);
  const bool old_news = std::holds_alternative<wire::Heartbeat>(message) && roster.version() == version;
  if (!old_news || before != peer_state()) settle();
}

void Swarm::dispatch(PeerId from, const wire::Message& message) {
  std::visit(
      [&]<class T>(const T& m) {
        if constexpr (requires { receive(from, m); }) receive(from, m);
      },
      message);
}

void Swarm::on_taken(Instant now, const Member& caller, bool founds) {
  core_.wake(now);
  const Roster& roster = core_.membership.roster();
  if (!roster.is_open(caller.peer) || roster.is_open(caller)) return;
  const bool member = head() && names(head()->members, caller);
  // Every peer that waits for the beginning waits for the founder: another process under its id would keep it
  // away.
  const bool awaited =
      founds && !head() && peer_state() == PeerState::fresh && !core_.membership.has_founder(caller.peer);
  if (member || awaited) turn_away(core_, caller.peer);
}

// ---- time

void Swarm::step(Instant now) {
  core_.wake(now);
  for (const Detector::Silence& silence : core_.membership.step(now, is_overdue(core_))) {
    const std::string why = "silent for " + std::to_string(to_seconds(silence.silent)).substr(0, 4) + " s";
    core_.outputs.ask_owner(Hangup{silence.peer});
    lose(core_, silence.peer, why, silence.silent);
  }
  if (now >= core_.next_tick) tick();
  settle();
}

void Swarm::tick() {
  const Rarely& chance = core_.options.rarely;
  core_.next_tick = core_.now + (rarely(chance, "swarm.late_tick") ? 2 : 1) * HeartbeatSchedule::kTick;
  const std::vector<PeerId> told = announcing_.tick();
  if (auto gossip = core_.membership.gossip(core_.now)) core_.send(gossip->first, std::move(gossip->second));
  if (head() && head()->last) return;
  for (std::string& address : core_.membership.roster().dials(core_.now, core_.members(), chance))
    core_.outputs.ask_owner(Dial{std::move(address)});
  announcing_.tell_again(told);
  if (run_is_over_ && !core_.part.ended() && core_.membership.roster().following().empty()) {
    core_.part.end();
    core_.outputs.ask_owner(Ended{"the run ended before this peer had its last state"});
  }
}

// ---- the owner

void Swarm::fresh(Instant now, const Digest& parameters) {
  core_.wake(now);
  core_.history.fresh(parameters);
  announcing_.send_progress();
  settle();
}

void Swarm::go_on_alone(Instant now) {
  core_.wake(now);
  core_.part.go_on_alone();
  settle();
}

void Swarm::fall_behind(Instant now, std::string why) {
  core_.wake(now);
  out_of_step({std::move(why)});
  settle();
}

void Swarm::begin(Instant now, const wire::Record& record, const Digest& parameters, bool moved_on) {
  core_.wake(now);
  if (peer_state() == PeerState::fresh) core_.part.begin_anew();
  adopt(record);
  core_.came_moved_on = moved_on;
  announcing_.tell_peer_state();  // before the progress: only peers that follow the history count
  applied(now, record.round, parameters);
}

void Swarm::applied(Instant now, Round round, const Digest& parameters) {
  core_.wake(now);
  if (!head() || head()->round != round || peer_state() == PeerState::syncing) return;
  core_.history.applied(round, parameters);
  if (head()->last) announcing_.tell_peer_state();
  announcing_.send_progress(lacks_what_is_ahead(core_));
  settle();
}

void Swarm::completed(Instant now, const Digest& mean) {
  core_.wake(now);
  core_.acceptor.complete(mean);
  if (!rarely(core_.options.rarely, "swarm.late_vote")) announcing_.say_vote();  // the next tick says it
  settle();
}

void Swarm::report_stall(Instant now, PeerId suspect, wire::StallCause cause, RangeSet missing) {
  core_.wake(now);
  if (!core_.takes_part()) return;
  following_.report_stall(suspect, cause, std::move(missing));
  settle();
}

std::optional<WorkItem> Swarm::begin_work(Instant now, std::uint64_t most) {
  core_.wake(now);
  std::optional<WorkItem> item = following_.begin_work(most);
  if (item && core_.work.wants_more() && !core_.part.leaves()) {
    announcing_.send_progress();
    settle();
  }
  return item;
}

void Swarm::finish_work(Instant now, const WorkItem& item, const Finished& finished) {
  core_.wake(now);
  if (following_.finish_work(item, finished)) settle();
}

void Swarm::give_back(Instant now, const WorkItem& item, const std::optional<FailedSample>& failed) {
  core_.wake(now);
  if (following_.give_back(item, failed)) settle();
}

void Swarm::set_presence(Instant now, wire::Presence presence) {
  core_.wake(now);
  if (following_.set_presence(presence)) settle();
}

void Swarm::leave(Instant now, std::optional<Instant> deadline) {
  core_.wake(now);
  if (leaving_.leave(deadline)) settle();
}

void Swarm::handed_over(Instant now) {
  core_.wake(now);
  if (leaving_.handed_over()) settle();
}

std::vector<std::uint32_t> Swarm::keep(Instant now, PeerId from, const wire::Entrust& entrust) {
  core_.wake(now);
  const std::optional<std::vector<std::uint32_t>> kept = leaving_.keep(from, entrust);
  if (kept) settle();
  return kept.value_or(std::vector<std::uint32_t>{});
}

void Swarm::set_at_risk(Instant now, bool at_risk) {
  core_.wake(now);
  if (leaving_.set_at_risk(at_risk)) settle();
}

// ---- messages

void Swarm::receive(PeerId from, const wire::Heartbeat& told) {
  const wire::Heartbeat heartbeat = core_.membership.on_heartbeat(core_.now, from, told, core_.history);
  if (Lead* lead = leading_.lead()) lead->on_heartbeat(from, heartbeat);
  const std::optional<wire::RunEnd>& end = heartbeat.run_end;
  if (!core_.run_end && end && end->rounds == core_.options.rounds && is_member(core_.members(), from))
    core_.run_end = end;
  if (core_.membership.take_resend(core_.now, from)) core_.outputs.ask_owner(SendAgain{from});
  const bool has_history =
      heartbeat.peer_state != PeerState::fresh && heartbeat.peer_state != PeerState::syncing;
  if (peer_state() == PeerState::fresh && has_history)
    return out_of_step({"the run is at round " + std::to_string(heartbeat.head)});
  if (!core_.takes_part() || !has_history) return;
  // A peer that missed the decision, or whose history gives way to this one, is told the record.
  if (goes_before(core_.history.rank(), rank_of(heartbeat))) core_.send(from, wire::Commit{*head()});
}

void Swarm::receive(PeerId from, const wire::Peers& peers) {
  core_.membership.on_peers(from, peers.peers, core_.members());
}

void Swarm::receive(PeerId from, const wire::Progress& progress) {
  if (!is_sound(progress, core_.options.lease)) return;
  core_.membership.hear(from, progress);
  const std::optional<Digest>& parameters = core_.history.parameters();
  const bool waits_for_the_beginning = !head() && progress.round == 0 && parameters;
  if (waits_for_the_beginning && (core_.options.founders_parameters || progress.parameters == *parameters))
    core_.membership.on_fresh(from);
  if (Lead* lead = leading_.lead()) lead->on_progress(core_.membership.process(from), progress);
}

void Swarm::receive(PeerId from, const wire::Lease& lease) {
  if (std::optional<CatchUp> due = following_.take(from, lease)) out_of_step(*std::move(due));
}

void Swarm::receive(PeerId from, const wire::Plan& plan) {
  if (std::optional<CatchUp> due = following_.take(from, plan)) out_of_step(*std::move(due));
}

void Swarm::receive(PeerId from, const wire::Vote& vote) {
  if (leading_.leads() && core_.of_this_round(vote.step.round)) leading_.lead()->on_vote(from, vote);
}

void Swarm::receive(PeerId from, const wire::Promise& promise) {
  if (!leading_.leads() || !core_.of_this_round(promise.progress.round)) return;
  if (!is_sound(promise.progress, core_.options.lease)) return;
  const auto& plan = promise.accepted;
  if (plan && !fault_of(plan->plan.draft, *head(), core_.options.lease).empty()) return;
  leading_.lead()->on_promise(from, promise);
}

void Swarm::receive(PeerId from, const wire::StallReport& report) {
  if (report.cause == wire::StallCause::send_again) {
    if (report.suspect != core_.options.self.peer || !core_.of_this_round(report.step.round)) return;
    core_.membership.ask_again(core_.now, from);
    if (core_.membership.take_resend(core_.now, from)) core_.outputs.ask_owner(SendAgain{from});
    return;
  }
  if (Lead* lead = leading_.lead()) lead->on_report(from, report);
}

void Swarm::receive(PeerId from, const wire::Failures& failures) {
  if (leading_.leads() && is_sound(failures, core_.batch())) leading_.lead()->on_failures(from, failures);
}

void Swarm::receive(PeerId from, const wire::HandOver& order) {
  if (core_.of_this_round(order.round) && following_.may_follow(from, order.ballot)) leaving_.take(order);
}

// From a peer that followed the run longer than this one, or as long; or from this one as the leader.
void Swarm::receive(PeerId from, const wire::Stop& stop) {
  const bool counts = from == core_.options.self.peer || !core_.takes_part() ||
                      names(core_.members(), core_.membership.process(from));
  if (core_.part.ended() || !counts || (head() && stop.round <= head()->round)) return;
  core_.part.end();
  leading_.end();
  core_.outputs.ask_owner(Ended{printable_line(stop.why.substr(0, 2 * wire::kMostFailureBytes)), true});
}

void Swarm::receive(PeerId, const wire::Commit& commit) {
  const wire::Record& record = commit.record;
  History& history = core_.history;
  if (record.run != core_.options.run || record.members.empty() || core_.part.ended()) return;
  const wire::Rank told = rank_of(record);
  run_is_over_ = run_is_over_ || (record.last && (!head() || goes_before(told, history.rank())));
  core_.membership.on_commit(core_.now, told);
  if (peer_state() == PeerState::fresh) {
    const bool begins =
        record.round == 0 && history.parameters() && record.parameters == *history.parameters();
    if (begins) {
      adopt(record);
      announcing_.send_progress();
    } else if (record.round == 0 && history.parameters() && core_.options.founders_parameters) {
      out_of_step({"the run begins with the parameters of its founder"});
    }
    return;
  }
  if (peer_state() == PeerState::syncing || !head()) return;
  const History::News news = history.judge(record, core_.acceptor.expected());
  if (news == History::News::old) return;
  if (news == History::News::other && differs_from(history, record)) {
    return out_of_step(
        {"its parameters differ from those with which round " + std::to_string(record.round) + " began",
         true});
  }
  if (news == History::News::other) {
    const std::string round = "round " + std::to_string(record.round);
    return out_of_step({record.round > head()->round ? round + " was decided without this peer"
                                                     : "another history goes before this one: its " + round});
  }
  // I2: a record is followed only by a peer whose own mean is the one that it decides.
  TW_CHECK(core_.acceptor.stage() == Acceptor::Stage::complete && core_.takes_part());
  core_.last_round.decided(core_.now, core_.acceptor.plan()->shares);
  report_changes(core_, record);
  core_.part.decided();
  turn_away_squatters(core_, record.members);
  history.extend(record);
  core_.outputs.ask_owner(Committed{record});
  begin_round(false);
}

// ---- history

void Swarm::adopt(const wire::Record& record) {
  TW_CHECK(!leading_.leads());
  core_.next_work.reset();
  turn_away_squatters(core_, record.members);
  begin_round(core_.history.begin(record));
}

// again: the state was taken anew, and promises and votes of this round still stand.
void Swarm::begin_round(bool again) {
  const wire::Record& record = *head();
  core_.membership.begin_round(core_.now, record);
  const bool member = names(record.members, core_.options.self);
  if (!member && core_.part.leaves()) {
    core_.outputs.ask_owner(Ended{"left after round " + std::to_string(record.round)});
    core_.part.end();
  }
  core_.part.follow(member);
  TW_CHECK(core_.part.is_member() == member);
  leading_.end();
  core_.last_round.begin_round();
  core_.acceptor.begin_round(again);
  if (!again) core_.farewell.begin_round();
  if (again) {
    core_.work.start_over();
    return;
  }
  core_.came_moved_on = false;
  core_.work = core_.next_work ? *std::exchange(core_.next_work, {}) : Work(record.round + 1);
  TW_CHECK(core_.work.round() == record.round + 1);
  leading_.begin_round();
}

void Swarm::out_of_step(CatchUp why) {
  if (peer_state() == PeerState::syncing || core_.part.ended()) return;
  core_.part.fall_behind();
  core_.next_work.reset();
  leading_.end();
  announcing_.tell_peer_state();
  core_.outputs.ask_owner(std::move(why));
}

// A leader's word to itself goes the way of all others, so that leading and following never meet.
void Swarm::settle() {
  if (const std::optional<wire::Record> first = found_when_all_are_here(core_)) {
    core_.broadcast(wire::Commit{*first});
    if (core_.options.founders_parameters) core_.membership.take_the_first_state(core_.now, first->members);
    adopt(*first);
    announcing_.send_progress();
  }
  do {
    while (!core_.own_messages.empty()) {
      const wire::Message message = std::move(core_.own_messages.front());
      core_.own_messages.pop_front();
      dispatch(core_.options.self.peer, message);
    }
    leading_.leave_a_lost_one();
    if (leading_.consider() == Ballot{0}) announcing_.send_progress();
    if (const std::optional<wire::Stop> stop = leading_.step()) receive(core_.options.self.peer, *stop);
  } while (!core_.own_messages.empty() || (leading_.leads() && leading_.lead()->resigned()));
  leaving_.hand_over_when_idle();
  leaving_.consider();
}

// ---- views

std::uint64_t Swarm::held_bytes() const {
  const std::uint64_t notes = leading_.leads() ? leading_.lead()->notes() : 0;
  return core_.membership.held_bytes() + notes * Membership::kNoteBytes;
}

Wait Swarm::waiting() const {
  if (leading_.leads()) return leading_.lead()->waiting();
  if (core_.farewell.stage() != Farewell::Stage::none)
    return {Wait::Kind::custody, {core_.farewell.order().to}, head()->round + 1};
  if (!head()) return wait_for_the_beginning(core_);
  const std::optional<PeerId> leads = core_.leader();
  if (leads == core_.options.self.peer) return leading_.wait_to_lead();
  std::vector<PeerId> missing = core_.membership.missing_for_a_majority(core_.members());
  if (!missing.empty()) return {Wait::Kind::majority, std::move(missing), head()->round};
  Wait wait{Wait::Kind::members, {}, head()->round + 1};
  if (leads) {
    wait.kind = core_.acceptor.plan() ? Wait::Kind::commit : Wait::Kind::work;
    wait.peers = {*leads};
    return wait;
  }
  for (const Member& m : head()->members) {
    if (!m.is(core_.options.self)) wait.peers.push_back(m.peer);
  }
  return wait;
}

}  // namespace tw::swarm
