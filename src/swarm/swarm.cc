// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/prng.h"
#include "swarm/ballots/quorum.h"
#include "swarm/leases/batch.h"
#include "swarm/straggler_policy.h"
#include "wire/frame.h"

namespace tw::swarm {
namespace {

using wire::Member;
using namespace std::chrono_literals;

/// A computing peer reports its progress this often: a peer without progress is given up.
constexpr Duration kTellProgress = 1s;

bool lacks_of(const wire::Plan& plan, PeerId peer, const Work& work) {
  return std::ranges::any_of(plan.draft.contributors, [&](const wire::Contribution& c) {
    return c.peer == peer && !work.does_all_of(c.slot, c.microbatches);
  });
}

/// The microbatch among these, of the record's round, that holds the sample.
std::optional<std::uint64_t> microbatch_of(std::uint64_t sample, RangeSet among, const wire::Record& record,
                                           const LeaseBook::Options& lease) {
  while (!among.empty()) {
    const RangeSet one = among.take(1);
    if (samples_of(record, one, lease).contains(sample)) return one.ranges().front().first;
  }
  return std::nullopt;
}

/// The grain that others hear of. most: 0, not known yet: leases of a power of two that divides the round,
/// so that nothing odd, such as a batch of one sample, is left of them when it is known.
std::uint64_t known_grain(std::uint64_t most, std::uint64_t microbatches) {
  if (most > 0) return std::min(most, microbatches);
  constexpr std::uint64_t kLeasesOfARound = 8;
  std::uint64_t grain = 1;
  while (grain * 2 * kLeasesOfARound <= microbatches && microbatches % (grain * 2) == 0) grain *= 2;
  return grain;
}

}  // namespace

Swarm::Swarm(Options options, Instant now)
    : options_(std::move(options)),
      now_(now),
      times_{.next_tick = now},
      part_(options_.returns),
      membership_(options_.self, options_.bootstrap),
      own_{.grain = known_grain(options_.grain, options_.lease.microbatches())} {}

const std::vector<Member>& Swarm::members() const {
  static const std::vector<Member> kNone;
  return head() ? head()->members : kNone;
}

std::vector<world::Event> Swarm::take_events_until(Round round) {
  const auto later = std::stable_partition(events_.begin(), events_.end(),
                                           [&](const world::Event& event) { return event.round <= round; });
  std::vector<world::Event> due(std::make_move_iterator(events_.begin()), std::make_move_iterator(later));
  events_.erase(events_.begin(), later);
  return due;
}

// ---- network
// --------------------------------------------------------------------------------------------------

const Stances& Swarm::stances() const { return membership_.stances(); }

std::set<PeerId> Swarm::anchors() const { return anchors_of(membership_, options_); }

Leading::View Swarm::view() const {
  return {now_, options_, history_, membership_, acceptor_, part_, farewell_, last_round_};
}

void Swarm::on_open(Instant now, const Member& peer, const wire::Marks& marks) {
  wake(now);
  const bool to_all = options_.founder && !head();
  const std::vector<Member> others = membership_.introductions(peer.peer, leader(), to_all);
  membership_.on_open(now, peer, marks);
  if (!others.empty()) send(peer.peer, wire::Peers{others});
  send(peer.peer, heartbeat_to(peer.peer));
  settle();
}

void Swarm::on_close(Instant now, PeerId peer, const std::string& why) {
  wake(now);
  lose(peer, why, membership_.silence(now, peer));
  settle();
}

void Swarm::listens_at(const std::string& address) { options_.self.address = address; }

void Swarm::on_sign_of_life(Instant now, PeerId peer) { membership_.on_sign_of_life(now, peer); }

void Swarm::on_refused(Instant now, const std::string& address) { membership_.on_refused(now, address); }

std::uint64_t Swarm::held_bytes() const {
  return membership_.held_bytes() + (leads() ? leading_.lead()->notes() : 0) * Membership::kNoteBytes;
}

void Swarm::on_message(Instant now, PeerId from, const wire::Message& message) {
  wake(now);
  membership_.on_sign_of_life(now, from);
  const std::uint64_t version = roster().version();
  const wire::PeerState before = peer_state();
  dispatch(from, message);
  const bool old_news = std::holds_alternative<wire::Heartbeat>(message) && roster().version() == version;
  if (!old_news || before != peer_state()) settle();
}

void Swarm::dispatch(PeerId from, const wire::Message& message) {
  std::visit(
      [&]<class T>(const T& m) {
        if constexpr (requires { receive(from, m); }) receive(from, m);
      },
      message);
}

void Swarm::lose(PeerId peer, const std::string& why, Duration silent) {
  if (!roster().is_open(peer)) return;
  const bool leaves = membership_.stances().of(peer).leaving;
  membership_.on_close(now_, peer, members());
  if (leaves || !head() || head()->last || !names(head()->members, roster().process(peer))) return;
  world::Event event{now_, world::Phase::lost, head()->round + 1, peer, why};
  event.numbers = {{"silent_s", to_seconds(silent)}};
  events_.push_back(std::move(event));
  const std::optional<PeerId> leads = leader();
  if (takes_part() && leads && *leads != peer) {
    send(*leads, wire::StallReport{{head()->round + 1}, peer, wire::StallCause::unreachable});
  }
}

// ---- time
// -----------------------------------------------------------------------------------------------------

// Time in which this process was stopped counts as no peer's delay.
void Swarm::wake(Instant now) {
  now_ = now;
  const Duration late = now - times_.next_tick;
  if (late <= Detector::kStopped) return;
  times_.next_tick = now;
  last_round_.stood_still(late);
}

void Swarm::step(Instant now) {
  wake(now);
  for (const Detector::Silence& silence : membership_.step(now, is_overdue())) {
    const std::string why = "silent for " + std::to_string(to_seconds(silence.silent)).substr(0, 4) + " s";
    ask_owner(Hangup{silence.peer});
    lose(silence.peer, why, silence.silent);
  }
  if (now >= times_.next_tick) tick();
  settle();
}

// The round under way takes much longer than expected.
bool Swarm::is_overdue() const {
  return acceptor_.averages() && last_round_.is_overdue(now_, from_seconds(acceptor_.plan()->expected_s));
}

void Swarm::tick() {
  times_.next_tick = now_ + (rarely(options_.rarely, "swarm.late_tick") ? 2 : 1) * HeartbeatSchedule::kTick;
  const std::vector<PeerId> due = membership_.tick(in_front());
  for (PeerId peer : due) send(peer, heartbeat_to(peer));
  const bool lost_ground =
      peer_state() == wire::PeerState::syncing && own_.catching_up.lost_ground >= Holdback::kLostGround;
  if (lost_ground && now_ - times_.told_state >= kTellProgress)
    tell_peer_state();  // the leader, whoever it is, has to know
  if (auto gossip = membership_.gossip(now_)) send(gossip->first, std::move(gossip->second));
  if (head() && head()->last) return;
  for (std::string& address : membership_.dials(now_, members(), options_.rarely)) {
    ask_owner(Dial{std::move(address)});
  }
  const bool hungry = work_.idle() && work_.wants_more();
  const bool tells = !work_.idle() && now_ - times_.told_progress >= kTellProgress;
  if (hungry || tells) send_progress(false, due);
  say_vote();  // once more: the leader may have lost the first one with all it knew
  if (run_is_over_ && !part_.ended() && !(head() && head()->last) && roster().following().empty()) {
    part_.end();
    ask_owner(Ended{"the run ended before this peer had its last state"});
  }
}

// ---- the owner
// ------------------------------------------------------------------------------------------------

void Swarm::fresh(Instant now, const Digest& parameters) {
  wake(now);
  history_.fresh(parameters);
  send_progress();
  settle();
}

void Swarm::go_on_alone(Instant now) {
  wake(now);
  part_.go_on_alone();
  settle();
}

void Swarm::seek(const std::vector<Member>& members) { membership_.seek(members); }

void Swarm::begin(Instant now, const wire::Record& record, const Digest& parameters) {
  wake(now);
  if (peer_state() == wire::PeerState::fresh) part_.begin_anew();
  adopt(record);
  tell_peer_state();  // before the progress: only peers that follow the history count
  applied(now, record.round, parameters);
}

void Swarm::applied(Instant now, Round round, const Digest& parameters) {
  wake(now);
  if (!head() || head()->round != round || peer_state() == wire::PeerState::syncing) return;
  history_.applied(round, parameters);
  if (head()->last) tell_peer_state();
  send_progress();
  settle();
}

void Swarm::completed(Instant now, const Digest& mean) {
  wake(now);
  acceptor_.complete(mean);
  if (!rarely(options_.rarely, "swarm.late_vote")) say_vote();  // the next tick says it
  settle();
}

void Swarm::say_vote() {
  if (farewell_.gave_seat()) return;
  if (const std::optional<wire::Vote> vote = acceptor_.vote()) {
    send(ballot_owner(head()->members, vote->ballot).peer, *vote);
  }
}

void Swarm::report_stall(Instant now, PeerId suspect, wire::StallCause cause, RangeSet missing) {
  wake(now);
  if (!takes_part()) return;
  if (const std::optional<PeerId> leads = leader())
    send(*leads, wire::StallReport{{head()->round + 1}, suspect, cause, std::move(missing)});
  settle();
}

std::optional<WorkItem> Swarm::begin_work(Instant now, std::uint64_t most) {
  wake(now);
  const std::uint64_t all = options_.lease.microbatches();
  own_.grain = known_grain(most, all);
  if (!takes_part() || !history_.parameters() || !own_.is_here()) return std::nullopt;
  if (work_.queued() > 0 && rarely(options_.rarely, "swarm.late_work")) return std::nullopt;
  std::optional<WorkItem> item = work_.begin(most == 0 ? all : own_.grain);
  if (item) {
    const wire::Record next = record_after(*head(), options_.lease);
    item->samples = samples_of(next, item->microbatches, options_.lease);
    if (work_.queued() > 0) item->ahead = samples_of(next, work_.waiting(), options_.lease);
  }
  if (item && work_.wants_more() && !part_.leaves()) {
    send_progress();
    settle();
  }
  return item;
}

void Swarm::finish_work(Instant now, const WorkItem& item, const Finished& finished) {
  wake(now);
  own_.samples_per_s = finished.samples_per_s;
  own_.settings = finished.settings;
  if (!of_this_round(item.round) || work_.idle()) return;
  work_.finish(finished.microbatches);
  if (!own_.is_here() && work_.queued() > 0) {
    give_back_queued();
  } else if (work_.wants_more() || !own_.settings.empty()) {
    send_progress(part_.leaves());
  }
  settle();
}

// If a plan counts on what was held, the leader has to know that it will not come.
void Swarm::give_back(Instant now, const WorkItem& item, const std::optional<FailedSample>& failed) {
  wake(now);
  if (!of_this_round(item.round) || work_.idle()) return;
  work_.finish(0);
  if (failed) {
    const wire::Record next = record_after(*head(), options_.lease);
    const auto microbatch = microbatch_of(failed->sample, item.microbatches, next, options_.lease);
    if (microbatch)
      work_.fail(*microbatch,
                 {failed->sample, failed->why.substr(0, wire::kMostFailureBytes), failed->skippable});
  }
  give_back_queued();
  settle();
}

void Swarm::tell_failures(PeerId to) {
  if (!work_.failures().microbatches.empty() && of_this_round(work_.round())) send(to, work_.failures());
}

bool Swarm::has_done_just(std::uint32_t slot, const RangeSet& microbatches) const {
  return work_.has_done_just(slot, microbatches);
}

void Swarm::give_back_queued() {
  work_.drop_queued();
  send_progress(true);
  if (acceptor_.averages() && leader() && lacks_of(*acceptor_.plan(), options_.self.peer, work_)) {
    const StepId step = acceptor_.plan()->step();
    send(*leader(), wire::StallReport{step, options_.self.peer, wire::StallCause::owes_contribution});
  }
}

void Swarm::fall_behind(Instant now, std::string why) {
  wake(now);
  out_of_step(std::move(why));
  settle();
}

void Swarm::catching_up(Instant now, const wire::CatchingUp& how) {
  const bool news =
      how.lost_ground > own_.catching_up.lost_ground && how.lost_ground >= Holdback::kLostGround;
  own_.catching_up = how;
  if (!news) return;
  wake(now);
  tell_peer_state();
}

// Others have to know at once: this peer may be the one that leads.
void Swarm::set_presence(Instant now, wire::Presence presence) {
  wake(now);
  if (std::exchange(own_.presence, presence) == presence) return;
  tell_peer_state();
  if (!own_.is_here() && work_.queued() > 0) {
    give_back_queued();
  } else {
    send_progress();
  }
  settle();
}

// ---- sending
// --------------------------------------------------------------------------------------------------

void Swarm::send(PeerId to, wire::Message message) {
  if (to == options_.self.peer) {
    own_messages_.push_back(std::move(message));
  } else if (roster().is_open(to)) {
    messages_.push_back({to, std::move(message)});
  }
}

// The leader, and its successor.
std::set<PeerId> Swarm::in_front() const {
  std::set<PeerId> front;
  const std::optional<PeerId> leads = leader();
  if (!leads) return front;
  front.insert(*leads);
  const auto successor = std::find_if(head()->members.begin(), head()->members.end(),
                                      [&](const Member& m) { return m.peer != *leads && is_here(m); });
  if (successor != head()->members.end()) front.insert(successor->peer);
  return front;
}

void Swarm::ask_owner(Action action) { actions_.push_back(std::move(action)); }

void Swarm::broadcast(const wire::Message& message) {
  for (PeerId peer : roster().open_peers()) send(peer, message);
}

void Swarm::tell_peer_state() {
  times_.told_state = now_;
  const PeerId self = options_.self.peer;
  const wire::Heartbeat own = heartbeat_to(self);
  membership_.on_own_heartbeat(own);
  if (Lead* lead = leading_.lead()) lead->on_heartbeat(self, own);
  for (PeerId peer : roster().open_peers()) send(peer, heartbeat_to(peer));
}

wire::Heartbeat Swarm::heartbeat_to(PeerId peer) const {
  wire::Heartbeat beat;
  beat.peer_state = peer_state();
  if (head()) {
    beat.head = head()->round;
    beat.head_record = history_.digest();
    beat.majority_samples = head()->majority_samples;
    beat.samples = head()->samples_total();
    beat.had_company = head()->had_company;
    beat.restarts = head()->restarts;
  }
  if (peer_state() == wire::PeerState::syncing) beat.catching_up = own_.catching_up;
  beat.outlook = farewell_.outlook();
  beat.presence = own_.presence;
  membership_.address(beat, now_, peer);
  // A peer is taken for lost after four times its announced interval.
  const auto quiet_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(farewell_.silence_ahead(now_) / 2);
  beat.next_ms = std::max(beat.next_ms, static_cast<std::uint32_t>(quiet_ms.count()));
  return beat;
}

wire::Progress Swarm::progress() const {
  wire::Progress progress;
  progress.round = head() ? head()->round + 1 : 0;
  progress.ballot = acceptor_.promised();
  progress.parameters = history_.parameters().value_or(Digest{});
  progress.samples_per_s = own_.samples_per_s;
  progress.grain = own_.grain;
  progress.slots = work_.progress();
  progress.wants_more =
      history_.parameters() && work_.wants_more() && !part_.leaves() && own_.is_here() && is_knotted();
  progress.leaving = part_.leaves();
  progress.called = acceptor_.averages();
  progress.bandwidth = own_.bandwidth;
  progress.outlook = farewell_.outlook();
  progress.leaves_in_s = farewell_.leaves_in_s(now_);
  progress.seats = acceptor_.seats();
  progress.gave_seat = farewell_.gave_seat();
  progress.settings = own_.settings;
  return progress;
}

void Swarm::send_progress(bool gave_back) { send_progress(gave_back, roster().open_peers()); }

void Swarm::send_progress(bool gave_back, const std::vector<PeerId>& where_unled) {
  if (!history_.parameters() || part_.ended()) return;
  wire::Progress now = progress();
  now.gave_back = gave_back;
  times_.told_progress = now_;
  if (part_.is_member()) {
    if (const std::optional<PeerId> leads = leader()) {
      tell_failures(*leads);
      send(*leads, now);
    }
  } else if (peer_state() == wire::PeerState::ready || peer_state() == wire::PeerState::fresh) {
    for (PeerId peer : where_unled) {
      tell_failures(peer);
      send(peer, now);
    }
  }
}

bool Swarm::is_orphaned() const {
  return peer_state() == wire::PeerState::ready && !head()->last &&
         std::ranges::none_of(head()->members, [&](const Member& m) { return is_here(m); });
}

std::vector<PeerId> Swarm::not_at_the_end() const {
  TW_CHECK(head() && head()->last);
  return membership_.lacking(history_.digest(), members());
}

Wait Swarm::wait_for_the_beginning() const {
  Wait wait{Wait::Kind::company};
  if (options_.founder) {
    wait.total = options_.wait_for;
    const std::set<PeerId>& fresh = membership_.fresh();
    wait.done = std::min<std::size_t>(wait.total, fresh.size() + 1);
    wait.peers.assign(fresh.begin(), fresh.end());
    if (wait.done < wait.total) return wait;
    if (membership_.has_asked_all()) return {};
    wait.kind = Wait::Kind::answer;
  } else {
    wait.peers = roster().open_peers();
    wait.kind = wait.peers.empty()               ? Wait::Kind::answer
                : membership_.has_founder_here() ? Wait::Kind::beginning
                                                 : Wait::Kind::founder;
  }
  return wait;
}

Wait Swarm::waiting() const {
  if (leads()) return leading_.lead()->waiting();
  if (farewell_.stage() != Farewell::Stage::none)
    return {Wait::Kind::custody, {farewell_.order().to}, head()->round + 1};
  if (!head()) return wait_for_the_beginning();
  const std::optional<PeerId> leads = leader();
  if (leads == options_.self.peer) return wait_to_lead(view());
  if (std::vector<PeerId> missing = membership_.missing_for_a_majority(members()); !missing.empty())
    return {Wait::Kind::majority, std::move(missing), head()->round};
  Wait wait{Wait::Kind::members, {}, head()->round + 1};
  if (leads) {
    wait.kind = acceptor_.plan() ? Wait::Kind::commit : Wait::Kind::work;
    wait.peers = {*leads};
    return wait;
  }
  for (const Member& m : head()->members) {
    if (!m.is(options_.self)) wait.peers.push_back(m.peer);
  }
  return wait;
}

}  // namespace tw::swarm
