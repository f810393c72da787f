// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/prng.h"
#include "swarm/batch.h"
#include "swarm/quorum.h"
#include "swarm/straggler_policy.h"
#include "wire/frame.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

/// While it computes, a peer tells so often how far it is: one of which nothing comes is given up.
constexpr Duration kTellProgress = 1s;
/// A tick that comes later than this was not late but stopped (SIGSTOP, a suspended VM).
constexpr Duration kStopped = 1s;
/// A newcomer hears of so many peers where links are many. The leader tells it of all.
constexpr std::size_t kSomePeers = 8;
/// Where links are many, each peer tells another one of some of its links once in so many ticks.
constexpr std::uint64_t kGossipTicks = 16;
/// At most so many peers are remembered as gone, and all members beside them.
constexpr std::size_t kMostLost = 4096;
/// Before any round was averaged.
constexpr Duration kExpectedReduce = 10s;

std::uint64_t nanos(Instant t) { return static_cast<std::uint64_t>(t.time_since_epoch().count()); }

}  // namespace

Swarm::Swarm(Options options, Instant now)
    : options_(std::move(options)),
      now_(now),
      next_tick_(now),
      cadence_(options_.self.peer),
      roster_(options_.self.peer, options_.bootstrap),
      expected_reduce_(kExpectedReduce) {}

std::vector<Event> Swarm::take_events_until(Round round) {
  const auto later = std::stable_partition(events_.begin(), events_.end(),
                                           [&](const Event& event) { return event.round <= round; });
  std::vector<Event> due(std::make_move_iterator(events_.begin()), std::make_move_iterator(later));
  events_.erase(events_.begin(), later);
  return due;
}

// ---- network
// --------------------------------------------------------------------------------------------------

void Swarm::on_open(Instant now, const Member& peer, bool founds) {
  wake(now);
  if (founds) founder_ = peer;
  const std::vector<Member> others = introduced_to(peer.peer);
  roster_.open(peer);
  lost_.erase(peer.peer);
  detector_.open(now, peer.peer);
  cadence_.open(peer.peer);
  if (!others.empty()) send(peer.peer, Peers{others});
  send(peer.peer, heartbeat_to(peer.peer));
  settle();
}

void Swarm::on_close(Instant now, PeerId peer, const std::string& why) {
  wake(now);
  lose(peer, why, detector_.silence(now, peer));
  settle();
}

void Swarm::on_refused(Instant now, const std::string& address) { roster_.refused(now, address); }

std::uint64_t Swarm::held_bytes() const {
  constexpr std::uint64_t kNoteBytes = 64;  // an id, what is known of it, and its place in a tree
  const std::size_t notes = barred_.size() + resends_.size() + lost_.size() + fresh_.size() +
                            at_the_end_.size() + (lead_ ? lead_->notes() : 0);
  return roster_.held_bytes() + notes * kNoteBytes;
}

void Swarm::on_message(Instant now, PeerId from, const Message& message) {
  wake(now);
  detector_.heard(now, from);
  const std::uint64_t version = roster_.version();
  const Standing standing = standing_;
  dispatch(from, message);
  const bool old_news = std::holds_alternative<Heartbeat>(message) && roster_.version() == version;
  if (!old_news || standing != standing_) settle();
}

void Swarm::dispatch(PeerId from, const Message& message) {
  std::visit(
      [&]<class T>(const T& m) {
        if constexpr (requires { receive(from, m); }) receive(from, m);
      },
      message);
}

void Swarm::lose(PeerId peer, const std::string& why, Duration silent) {
  if (!roster_.is_open(peer)) return;
  const std::optional<Heartbeat> last = roster_.last_heartbeat(peer);
  roster_.close(now_, peer);
  roster_.forget_strangers(head() ? head()->members : std::vector<Member>{});
  lost_.insert(peer);
  if (lost_.size() > kMostLost)
    std::erase_if(lost_, [&](PeerId gone) { return !head() || !is_member(head()->members, gone); });
  resends_.forget(peer);
  detector_.close(peer);
  holdback_.on_close(peer);
  cadence_.close(peer);
  fresh_.erase(peer);
  if (!head() || head()->last || !names(head()->members, roster_.process(peer))) return;
  if (last && last->standing == Standing::leaving) return;
  Event event{now_, Phase::lost, head()->round + 1, peer, why};
  event.numbers = {{"silent_s", to_seconds(silent)}};
  events_.push_back(std::move(event));
  const std::optional<PeerId> leads = leader();
  if (takes_part() && leads && *leads != peer) {
    send(*leads, Report{head()->round + 1, peer, Complaint::unreachable});
  }
}

// ---- time
// -----------------------------------------------------------------------------------------------------

// Time in which this process stood still is nobody's delay.
void Swarm::wake(Instant now) {
  now_ = now;
  const Duration late = now - next_tick_;
  if (late <= kStopped) return;
  next_tick_ = now;
  if (called_at_ != kNever) called_at_ += late;
}

void Swarm::step(Instant now) {
  wake(now);
  detector_.hurry(is_overdue());
  for (const Detector::Silence& silence : detector_.step(now)) {
    const std::string why = "silent for " + std::to_string(to_seconds(silence.silent)).substr(0, 4) + " s";
    decide(Hangup{silence.peer, why});
    lose(silence.peer, why, silence.silent);
  }
  if (now >= next_tick_) tick();
  settle();
}

// The round is being averaged, and takes much longer than it should.
bool Swarm::is_overdue() const {
  if (called_at_ == kNever || !acceptor_.averages()) return false;
  return now_ - called_at_ > swarm::overdue_after(from_seconds(acceptor_.plan()->expected_s));
}

void Swarm::tick() {
  next_tick_ = now_ + (rarely(options_.rarely, "swarm.late_tick") ? 2 : 1) * Cadence::kTick;
  const std::vector<PeerId> due = cadence_.tick(in_front());
  for (PeerId peer : due) send(peer, heartbeat_to(peer));
  const bool lost_ground =
      standing_ == Standing::syncing && catching_up_.lost_ground >= Holdback::kLostGround;
  if (lost_ground && now_ - told_standing_at_ >= kTellProgress) tell_standing();  // whoever leads has to know
  gossip();
  if (head() && head()->last) return;
  const std::vector<Member> members = head() ? head()->members : std::vector<Member>{};
  for (std::string& address : roster_.dials(now_, members, options_.rarely)) {
    decide(Dial{std::move(address)});
  }
  const bool hungry = work_.idle() && work_.wants_more();
  const bool tells = !work_.idle() && now_ - told_progress_at_ >= kTellProgress;
  if (hungry || tells) send_progress(false, due);
  say_vote();  // once more: the leader may have lost the first one with all it knew
  if (run_is_over_ && !ended_ && !(head() && head()->last) && roster_.following().empty()) {
    ended_ = true;
    decide(Ended{"the run ended before this peer had joined"});
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
  goes_on_alone_ = true;
  settle();
}

void Swarm::seek(const std::vector<Member>& members) {
  for (const Member& member : members) roster_.learn(member);
}

void Swarm::begin(Instant now, const Record& record, const Digest& parameters) {
  wake(now);
  waits_for_company_ = options_.founder && standing_ == Standing::fresh;
  adopt(record);
  tell_standing();  // before the progress: only who follows the history counts
  applied(now, record.round, parameters);
}

void Swarm::applied(Instant now, Round round, const Digest& parameters) {
  wake(now);
  if (!head() || head()->round != round || standing_ == Standing::syncing) return;
  history_.applied(round, parameters);
  if (head()->last) tell_standing();
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
  if (const std::optional<Vote> vote = acceptor_.vote()) {
    send(ballot_owner(head()->members, vote->ballot).peer, *vote);
  }
}

void Swarm::complain(Instant now, PeerId suspect, Complaint complaint, RangeSet missing) {
  wake(now);
  if (!takes_part()) return;
  if (const std::optional<PeerId> leads = leader())
    send(*leads, Report{head()->round + 1, suspect, complaint, std::move(missing)});
  settle();
}

std::optional<WorkItem> Swarm::begin_work(Instant now) {
  wake(now);
  if (!takes_part() || !history_.parameters() || busy_) return std::nullopt;
  if (work_.queued() > 0 && rarely(options_.rarely, "swarm.late_work")) return std::nullopt;
  std::optional<WorkItem> item = work_.begin();
  if (item) {
    const Record next = record_after(*head(), options_.lease);
    item->samples = samples_of(next, RangeSet(Range{item->microbatch, 1}), options_.lease);
  }
  if (item && work_.wants_more() && !leaving_) {
    send_progress();
    settle();
  }
  return item;
}

void Swarm::finish_work(Instant now, const WorkItem& item, double samples_per_s) {
  wake(now);
  samples_per_s_ = samples_per_s;
  if (!of_this_round(item.round) || work_.idle()) return;
  work_.finish();
  if (work_.wants_more()) send_progress(leaving_);
  settle();
}

void Swarm::catching_up(Instant now, const CatchingUp& how) {
  const bool news = how.lost_ground > catching_up_.lost_ground && how.lost_ground >= Holdback::kLostGround;
  catching_up_ = how;
  if (!news) return;
  wake(now);
  tell_standing();
}

void Swarm::set_busy(Instant now, bool busy) {
  wake(now);
  busy_ = busy;
  send_progress();
  settle();
}

void Swarm::leave(Instant now) {
  wake(now);
  if (leaving_) return;
  leaving_ = true;
  if (standing_ == Standing::member) {
    standing_ = Standing::leaving;
    work_.drop_queued();
    tell_standing();
    send_progress(true);
  }
  settle();
}

// ---- sending
// --------------------------------------------------------------------------------------------------

void Swarm::send(PeerId to, Message message) {
  if (to == options_.self.peer) {
    own_messages_.push_back(std::move(message));
  } else if (roster_.is_open(to)) {
    messages_.push_back({to, std::move(message)});
  }
}

// The leader, and who leads when it is lost.
std::set<PeerId> Swarm::in_front() const {
  std::set<PeerId> front;
  const std::optional<PeerId> leads = leader();
  if (!leads) return front;
  front.insert(*leads);
  const auto heir = std::find_if(head()->members.begin(), head()->members.end(),
                                 [&](const Member& m) { return m.peer != *leads && is_here(m); });
  if (heir != head()->members.end()) front.insert(heir->peer);
  return front;
}

// The peers that it is told of when its link comes up. The leader, or gossip(), tells it of the others.
std::vector<Member> Swarm::introduced_to(PeerId newcomer) const {
  const std::optional<PeerId> leads = leader();
  const bool all = roster_.open_peers().size() <= Cadence::kFewLinks || leads == options_.self.peer ||
                   (options_.founder && !head());
  if (all) return roster_.linked();
  std::vector<Member> some = roster_.linked(mix(options_.self.peer.value, newcomer.value), kSomePeers);
  if (leads) some.push_back(roster_.process(*leads));
  return some;
}

void Swarm::gossip() {
  const std::uint64_t dice = mix(options_.self.peer.value, nanos(now_));
  if (roster_.open_peers().size() <= Cadence::kFewLinks || dice % kGossipTicks != 0) return;
  const PeerId to = roster_.linked(mix(dice, 1), 1).front().peer;
  send(to, Peers{roster_.linked(mix(dice, 2), kSomePeers)});
}

void Swarm::decide(Decision decision) { decisions_.push_back(std::move(decision)); }

void Swarm::broadcast(const Message& message) {
  for (PeerId peer : roster_.open_peers()) send(peer, message);
}

void Swarm::tell_standing() {
  told_standing_at_ = now_;
  for (PeerId peer : roster_.open_peers()) send(peer, heartbeat_to(peer));
}

Heartbeat Swarm::heartbeat_to(PeerId peer) const {
  Heartbeat beat;
  beat.standing = standing_;
  if (head()) {
    beat.head = head()->round;
    beat.head_record = history_.digest();
    beat.majority_samples = head()->majority_samples;
    beat.samples = head()->samples_total();
    beat.had_company = head()->had_company;
    beat.restarts = head()->restarts;
  }
  if (standing_ == Standing::syncing) beat.catching_up = catching_up_;
  beat.sent_ns = nanos(now_);
  if (const std::optional<Heartbeat> last = roster_.last_heartbeat(peer)) {
    beat.echo_ns = last->sent_ns;
    beat.echo_delay_ns = static_cast<std::uint64_t>(roster_.heartbeat_age(now_, peer).count());
  }
  beat.next_ms = static_cast<std::uint32_t>(cadence_.interval(peer) / 1ms);
  return beat;
}

Progress Swarm::progress() const {
  Progress progress;
  progress.round = head() ? head()->round + 1 : 0;
  progress.ballot = acceptor_.promised();
  progress.parameters = history_.parameters().value_or(Digest{});
  progress.samples_per_s = samples_per_s_;
  progress.slots = work_.progress();
  progress.wants_more = history_.parameters() && work_.wants_more() && !leaving_ && !busy_ && is_knotted();
  progress.leaving = leaving_;
  progress.called = acceptor_.averages();
  progress.line = line_;
  return progress;
}

void Swarm::send_progress(bool gave_back) { send_progress(gave_back, roster_.open_peers()); }

void Swarm::send_progress(bool gave_back, const std::vector<PeerId>& where_unled) {
  if (!history_.parameters() || ended_) return;
  Progress now = progress();
  now.gave_back = gave_back;
  told_progress_at_ = now_;
  if (standing_ == Standing::member || standing_ == Standing::leaving) {
    if (const std::optional<PeerId> leads = leader()) send(*leads, now);
  } else if (standing_ == Standing::ready || standing_ == Standing::fresh) {
    for (PeerId peer : where_unled) send(peer, now);
  }
}

bool Swarm::is_orphaned() const {
  return standing_ == Standing::ready && !head()->last &&
         std::ranges::none_of(head()->members, [&](const Member& m) { return is_here(m); });
}

Rank Swarm::best_told() const {
  Rank best = now_ - told_by_commit_at_ < kCommitAlone ? told_by_commit_ : Rank{};
  for (const auto& [peer, incarnation] : roster_.following()) {
    const std::optional<Heartbeat> last = roster_.last_heartbeat(peer);
    if (last && goes_before(rank_of(*last), best)) best = rank_of(*last);
  }
  return best;
}

std::vector<PeerId> Swarm::not_at_the_end() const {
  TW_CHECK(head() && head()->last);
  std::vector<PeerId> missing;
  for (const Member& m : head()->members) {
    if (m.peer != options_.self.peer && !at_the_end_.contains(m.peer)) missing.push_back(m.peer);
  }
  return missing;
}

// A peer that is not a member yet waits for them, too. Where the process that is missing ran under this
// peer's own id, those that are here are waited for: they go on without it after their patience.
std::vector<PeerId> Swarm::missing_for_a_majority() const {
  std::vector<PeerId> missing;
  std::set<PeerId> here;
  for (const Member& m : head()->members) {
    if (is_here(m)) {
      here.insert(m.peer);
    } else if (m.peer != options_.self.peer) {
      missing.push_back(m.peer);
    }
  }
  if (here.empty() || is_quorum(head()->members, here)) return {};
  if (missing.empty()) std::ranges::copy(here, std::back_inserter(missing));
  return missing;
}

Wait Swarm::wait_for_the_beginning() const {
  Wait wait{Wait::Kind::company};
  if (options_.founder) {
    wait.total = options_.wait_for;
    wait.done = std::min<std::size_t>(wait.total, fresh_.size() + 1);
    wait.peers.assign(fresh_.begin(), fresh_.end());
    if (wait.done == wait.total) return {};
  } else {
    wait.peers = roster_.open_peers();
    wait.kind = wait.peers.empty() ? Wait::Kind::answer : Wait::Kind::beginning;
  }
  return wait;
}

// This peer is to lead and does not yet: another one may still.
Wait Swarm::wait_to_lead() const {
  Wait wait{Wait::Kind::takeover, {}, head()->round + 1, acceptor_.promised()};
  const Member& owner = ballot_owner(head()->members, acceptor_.promised());
  if (!owner.is(options_.self)) wait.peers.push_back(owner.peer);
  for (const Member& m : head()->members) {
    if (wait.peers.empty() && presumed_live(m.peer)) wait.peers.push_back(m.peer);
  }
  if (wait.peers.empty()) wait.peers = {options_.self.peer};
  return wait;
}

Wait Swarm::waiting() const {
  if (lead_) return lead_->waiting();
  if (!head()) return wait_for_the_beginning();
  const std::optional<PeerId> leads = leader();
  if (leads == options_.self.peer) return wait_to_lead();
  if (std::vector<PeerId> missing = missing_for_a_majority(); !missing.empty())
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

}  // namespace tw
