// SPDX-License-Identifier: Apache-2.0
#include "swarm/swarm.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/quorum.h"
#include "wire/frame.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 250ms;
/// Of one round; each costs a vector (average/ takes no more either).
constexpr std::uint32_t kMostSlots = 64;
/// After another member has taken the lead, it is left alone so long before this one tries again.
constexpr Duration kYield = 2s;
/// A member that was never linked yet (the mesh is still being knotted) counts as alive so long after a
/// decision.
constexpr Duration kMeshing = 2s;
/// Before any round was averaged.
constexpr Duration kExpectedReduce = 10s;

std::uint64_t nanos(Instant t) { return static_cast<std::uint64_t>(t.time_since_epoch().count()); }

}  // namespace

Swarm::Swarm(Options options, Instant now)
    : options_(std::move(options)),
      now_(now),
      next_tick_(now),
      roster_(options_.self.peer, options_.bootstrap),
      expected_reduce_(kExpectedReduce) {}

// ---- network
// --------------------------------------------------------------------------------------------------

void Swarm::on_open(Instant now, const Member& peer) {
  now_ = now;
  const std::vector<Member> others = roster_.linked();
  roster_.open(peer);
  lost_.erase(peer.peer);
  detector_.open(now, peer.peer);
  if (!others.empty()) send(peer.peer, Peers{others});
  send(peer.peer, heartbeat_to(peer.peer));
  settle();
}

void Swarm::on_close(Instant now, PeerId peer, const std::string& why) {
  now_ = now;
  lose(peer, why, detector_.silence(now, peer));
  settle();
}

void Swarm::on_refused(Instant now, const std::string& address) { roster_.refused(now, address); }

void Swarm::on_message(Instant now, PeerId from, const Message& message) {
  now_ = now;
  detector_.heard(now, from);
  dispatch(from, message);
  settle();
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
  lost_.insert(peer);
  detector_.close(peer);
  fresh_.erase(peer);
  if (!head_ || head_->last || !is_member(head_->members, peer)) return;
  if (last && last->standing == Standing::leaving) return;
  Event event{now_, Phase::lost, head_->round + 1, peer, why};
  event.numbers = {{"silent_s", to_seconds(silent)}};
  events_.push_back(std::move(event));
  const std::optional<PeerId> leads = leader();
  if (takes_part() && leads && *leads != peer) {
    send(*leads, Report{head_->round + 1, peer, Complaint::unreachable});
  }
}

// ---- time
// -----------------------------------------------------------------------------------------------------

void Swarm::step(Instant now) {
  now_ = now;
  for (const Detector::Silence& silence : detector_.step(now)) {
    const std::string why = "silent for " + std::to_string(to_seconds(silence.silent)).substr(0, 4) + " s";
    decisions_.push_back(Hangup{silence.peer, why});
    lose(silence.peer, why, silence.silent);
  }
  if (now >= next_tick_) tick();
  settle();
}

void Swarm::tick() {
  next_tick_ = now_ + kTick;
  tell_standing();
  if (head_ && head_->last) return;
  for (std::string& address : roster_.dials(now_, head_ ? head_->members : std::vector<Member>{})) {
    decisions_.push_back(Dial{std::move(address)});
  }
  const bool hungry = work_.idle() && work_.wants_more();
  if (hungry) send_progress();
  if (run_is_over_ && !ended_ && !(head_ && head_->last) && roster_.following().empty()) {
    ended_ = true;
    decisions_.push_back(Ended{"the run ended before this peer had joined"});
  }
}

// ---- the owner
// ------------------------------------------------------------------------------------------------

void Swarm::fresh(Instant now, const Digest& parameters) {
  now_ = now;
  parameters_ = parameters;
  send_progress();
  settle();
}

void Swarm::begin(Instant now, const Record& record, const Digest& parameters) {
  now_ = now;
  waits_for_company_ = options_.founder && !head_;
  adopt(record);
  tell_standing();  // before the progress: only who follows the history counts
  applied(now, record.round, parameters);
}

void Swarm::applied(Instant now, Round round, const Digest& parameters) {
  now_ = now;
  if (!head_ || head_->round != round || standing_ == Standing::syncing) return;
  parameters_ = parameters;
  if (head_->last) tell_standing();
  send_progress();
  settle();
}

void Swarm::completed(Instant now, const Digest& mean) {
  now_ = now;
  mean_ = mean;
  if (const std::optional<Vote> vote = acceptor_.vote(mean)) {
    send(ballot_owner(head_->members, vote->ballot), *vote);
  }
  settle();
}

void Swarm::complain(Instant now, PeerId suspect, Complaint complaint) {
  now_ = now;
  if (!takes_part()) return;
  if (const std::optional<PeerId> leads = leader())
    send(*leads, Report{head_->round + 1, suspect, complaint});
  settle();
}

std::optional<WorkItem> Swarm::begin_work(Instant now) {
  now_ = now;
  if (!takes_part() || !parameters_ || busy_) return std::nullopt;
  const std::optional<WorkItem> item = work_.begin();
  if (item && work_.wants_more() && !leaving_) {
    send_progress();
    settle();
  }
  return item;
}

void Swarm::finish_work(Instant now, const WorkItem& item, double samples_per_s) {
  now_ = now;
  samples_per_s_ = samples_per_s;
  if (!of_this_round(item.round) || work_.idle()) return;
  work_.finish();
  if (work_.wants_more()) send_progress(leaving_);
  settle();
}

void Swarm::set_busy(Instant now, bool busy) {
  now_ = now;
  busy_ = busy;
  send_progress();
  settle();
}

void Swarm::leave(Instant now) {
  now_ = now;
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

// ---- messages
// -------------------------------------------------------------------------------------------------

void Swarm::receive(PeerId from, const Heartbeat& told) {
  Heartbeat heartbeat = told;
  const bool on_its_way = head_ && told.standing == Standing::fresh && is_member(head_->members, from);
  if (on_its_way)
    heartbeat.standing = Standing::member;  // said before the record that made it one had arrived
  roster_.heard(now_, from, heartbeat);
  if (head_ && head_->last && heartbeat.head_record == head_digest_) at_the_end_.insert(from);
  if (heartbeat.echo_ns != 0) {
    const auto elapsed = static_cast<std::int64_t>(nanos(now_) - heartbeat.echo_ns - heartbeat.echo_delay_ns);
    detector_.round_trip(from, Duration{elapsed});
  }
  const bool has_history = heartbeat.standing != Standing::fresh && heartbeat.standing != Standing::syncing;
  if (standing_ == Standing::fresh && has_history && !options_.founder) {
    out_of_step("the run is at round " + std::to_string(heartbeat.head));
    return;
  }
  // Whoever missed the decision is told it.
  if (takes_part() && has_history && heartbeat.samples_total < head_->samples_total())
    send(from, Commit{*head_});
}

void Swarm::receive(PeerId, const Peers& peers) {
  for (const Member& m : peers.peers) roster_.learn(m);
}

void Swarm::receive(PeerId from, const Progress& progress) {
  if (!head_ && progress.round == 0 && parameters_ && progress.parameters == *parameters_)
    fresh_.insert(from);
  if (!lead_) return;
  lead_->on_progress(from == options_.self.peer ? options_.self : Member{from, roster_.address_of(from)},
                     progress);
}

bool Swarm::may_follow(PeerId from, Ballot ballot) {
  if (!takes_part() || ballot_owner(head_->members, ballot) != from) return false;
  if (ballot >= acceptor_.promised()) return true;
  send(from, Promise{acceptor_.promised(), progress(), std::nullopt, std::nullopt});  // it has to bid higher
  return false;
}

void Swarm::receive(PeerId from, const Lease& lease) {
  if (!of_this_round(lease.round) || !may_follow(from, lease.ballot) || leaving_) return;
  const std::uint64_t all =
      (options_.lease.target_batch_size + options_.lease.microbatch - 1) / options_.lease.microbatch;
  const bool sound = lease.slot < kMostSlots && !lease.microbatches.empty();
  if (!sound || !RangeSet(Range{0, all}).contains(lease.microbatches)) return;
  if (!work_.lease(lease.slot, lease.microbatches))
    out_of_step("the leader does not know what this peer has sent");
}

void Swarm::receive(PeerId from, const Recall& recall) {
  if (!of_this_round(recall.round) || !may_follow(from, recall.ballot)) return;
  work_.drop_queued();
  send_progress(true);
}

void Swarm::receive(PeerId from, const Plan& plan) {
  if (!of_this_round(plan.draft.round) || plan.draft.parent != head_digest_ || !may_follow(from, plan.ballot))
    return;
  if (parameters_ && plan.draft.parameters != *parameters_) {
    out_of_step("its parameters differ from those of the leader");
    return;
  }
  if (!acceptor_.take(plan)) return;
  if (called_at_ == kNever) called_at_ = now_;
  mean_.reset();
  decisions_.push_back(Reduce{plan});
}

void Swarm::receive(PeerId from, const Vote& vote) {
  if (lead_ && of_this_round(vote.round)) lead_->on_vote(from, vote);
}

void Swarm::receive(PeerId from, const Prepare& prepare) {
  if (!of_this_round(prepare.round) || !may_follow(from, prepare.ballot)) return;
  acceptor_.promise(prepare.ballot);
  work_.drop_queued();
  send(from, Promise{prepare.ballot, progress(), acceptor_.plan(), acceptor_.accepted()});
}

void Swarm::receive(PeerId from, const Promise& promise) {
  if (lead_ && of_this_round(promise.progress.round)) lead_->on_promise(from, promise);
}

void Swarm::receive(PeerId from, const Report& report) {
  if (lead_) lead_->on_report(from, report);
}

void Swarm::receive(PeerId, const Commit& commit) {
  const Record& record = commit.record;
  if (record.run != options_.run || record.members.empty() || ended_) return;
  run_is_over_ = run_is_over_ || record.last;
  told_by_commit_ = record.round;
  if (standing_ == Standing::fresh) {
    const bool begins = record.round == 0 && parameters_ && record.parameters == *parameters_;
    if (begins) {
      adopt(record);
      send_progress();
    }
    return;
  }
  if (standing_ == Standing::syncing || !head_ || record.samples_total() <= head_->samples_total()) return;
  const bool next = record.round == head_->round + 1 && record.parent == head_digest_;
  if (!next || !mean_ || *mean_ != record.mean) {
    out_of_step("round " + std::to_string(record.round) + " was decided without this peer");
    return;
  }
  if (called_at_ != kNever) expected_reduce_ = (3 * expected_reduce_ + (now_ - called_at_)) / 4;
  report_changes(record);
  waits_for_company_ = false;
  adopt(record);
  decisions_.push_back(Committed{record});
}

// ---- history
// --------------------------------------------------------------------------------------------------

void Swarm::report_changes(const Record& record) {
  for (const Member& m : record.members) {
    if (!is_member(head_->members, m.peer)) events_.push_back({now_, Phase::join, record.round, m.peer});
  }
  for (const Member& m : head_->members) {
    const std::optional<Heartbeat> last = roster_.last_heartbeat(m.peer);
    const bool left = m.peer == options_.self.peer ? leaving_ : last && last->standing == Standing::leaving;
    if (left && !is_member(record.members, m.peer))
      events_.push_back({now_, Phase::leave, record.round, m.peer});
  }
}

void Swarm::adopt(const Record& record) {
  head_ = record;
  head_digest_ = digest_of(record);
  head_since_ = now_;
  std::erase_if(lost_, [&](PeerId peer) { return !is_member(record.members, peer); });
  for (const Member& m : record.members) {
    roster_.learn(m);
    roster_.now_follows(m.peer);
  }
  const bool member = is_member(record.members, options_.self.peer);
  if (!member && leaving_) {
    decisions_.push_back(Ended{"left after round " + std::to_string(record.round)});
    ended_ = true;
  }
  standing_ = !member ? Standing::ready : leaving_ ? Standing::leaving : Standing::member;
  if (record.round > 0) parameters_.reset();
  mean_.reset();
  work_ = Work(record.round + 1);
  acceptor_ = Acceptor();
  lead_.reset();
  lead_again_at_ = {};
  led_.reset();
  called_at_ = kNever;
}

void Swarm::out_of_step(std::string why) {
  if (standing_ == Standing::syncing || ended_) return;
  standing_ = Standing::syncing;
  lead_.reset();
  tell_standing();
  decisions_.push_back(CatchUp{std::move(why)});
}

void Swarm::found_when_all_are_here() {
  if (!options_.founder || head_ || !parameters_ || fresh_.size() + 1 < options_.wait_for) return;
  std::vector<Member> members = {options_.self};
  for (PeerId peer : fresh_) members.push_back({peer, roster_.address_of(peer)});
  const Record record = genesis(options_.run, *parameters_, std::move(members));
  broadcast(Commit{record});
  adopt(record);
  send_progress();
}

// ---- leading
// --------------------------------------------------------------------------------------------------

bool Swarm::takes_part() const {
  const bool follows =
      standing_ == Standing::ready || standing_ == Standing::member || standing_ == Standing::leaving;
  return follows && head_ && !ended_;
}

std::set<PeerId> Swarm::live() const {
  std::set<PeerId> peers = roster_.following();
  peers.insert(options_.self.peer);
  return peers;
}

std::optional<PeerId> Swarm::leader() const {
  if (!head_ || head_->members.empty()) return std::nullopt;
  const std::set<PeerId> here = live();
  const PeerId owner = ballot_owner(head_->members, acceptor_.promised());
  if (here.contains(owner)) return owner;
  for (const Member& m : head_->members) {
    if (here.contains(m.peer)) return m.peer;
  }
  return std::nullopt;
}

bool Swarm::presumed_live(PeerId peer) const {
  return !roster_.is_open(peer) && !lost_.contains(peer) && now_ - head_since_ < kMeshing;
}

void Swarm::consider_leading() {
  const bool member = standing_ == Standing::member || standing_ == Standing::leaving;
  if (lead_ || ended_ || !member || now_ < lead_again_at_ || head_->last) return;
  const std::set<PeerId> here = live();
  const auto first = std::find_if(head_->members.begin(), head_->members.end(), [&](const Member& m) {
    return here.contains(m.peer) || presumed_live(m.peer);
  });
  if (first == head_->members.end() || first->peer != options_.self.peer) return;
  const bool undisputed = first == head_->members.begin() && acceptor_.promised() == 0 && !led_;
  const Ballot above = std::max(acceptor_.promised(), led_.value_or(0));
  const Ballot ballot = undisputed ? 0 : next_ballot(head_->members, options_.self.peer, above);
  led_ = ballot;
  // A run that begins anew from a checkpoint waits for company as one that begins from nothing does.
  const std::uint32_t wait_for = waits_for_company_ ? options_.wait_for : 0;
  lead_.emplace(Lead::Options{options_.self.peer, options_.lease, options_.segments, options_.rounds,
                              wait_for, options_.patience, expected_reduce_, options_.shares},
                *head_, ballot, now_);
  Event event{now_, Phase::lead, head_->round + 1};
  event.numbers = {{"ballot", ballot}};
  events_.push_back(std::move(event));
  lead_->set_live(now_, here);
  if (undisputed) send_progress();
}

void Swarm::drive_lead() {
  if (!lead_) return;
  if (acceptor_.promised() > lead_->ballot() || lead_->resigned()) {
    if (!lead_->resigned()) lead_again_at_ = now_ + kYield;
    led_ = std::max(led_.value_or(0), lead_->outbid());
    lead_.reset();
    return;
  }
  if (end_run_) lead_->end_run();
  lead_->set_live(now_, live());
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
    for (PeerId peer : live()) {
      const std::optional<Heartbeat> last = roster_.last_heartbeat(peer);
      const bool stays = peer != options_.self.peer && is_member(head_->members, peer) &&
                         !(last && last->standing == Standing::leaving);
      if (stays) return;
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
    consider_leading();
    drive_lead();
  } while (!own_messages_.empty());
  consider_leaving();
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

void Swarm::broadcast(const Message& message) {
  for (PeerId peer : roster_.open_peers()) send(peer, message);
}

void Swarm::tell_standing() {
  for (PeerId peer : roster_.open_peers()) send(peer, heartbeat_to(peer));
}

Heartbeat Swarm::heartbeat_to(PeerId peer) const {
  Heartbeat beat;
  beat.standing = standing_;
  if (head_) {
    beat.head = head_->round;
    beat.head_record = head_digest_;
    beat.samples_total = head_->samples_total();
  }
  beat.sent_ns = nanos(now_);
  if (const std::optional<Heartbeat> last = roster_.last_heartbeat(peer)) {
    beat.echo_ns = last->sent_ns;
    beat.echo_delay_ns = static_cast<std::uint64_t>(roster_.heartbeat_age(now_, peer).count());
  }
  return beat;
}

Progress Swarm::progress() const {
  Progress progress;
  progress.round = head_ ? head_->round + 1 : 0;
  progress.ballot = acceptor_.promised();
  progress.parameters = parameters_.value_or(Digest{});
  progress.samples_per_s = samples_per_s_;
  progress.slots = work_.progress();
  progress.wants_more = parameters_ && work_.wants_more() && !leaving_ && !busy_;
  progress.leaving = leaving_;
  progress.called = acceptor_.plan().has_value();
  return progress;
}

void Swarm::send_progress(bool gave_back) {
  if (!parameters_ || ended_) return;
  Progress now = progress();
  now.gave_back = gave_back;
  if (standing_ == Standing::member || standing_ == Standing::leaving) {
    if (const std::optional<PeerId> leads = leader()) send(*leads, now);
  } else if (standing_ == Standing::ready || standing_ == Standing::fresh) {
    broadcast(now);
  }
}

Round Swarm::newest_told() const {
  Round newest = told_by_commit_;
  for (PeerId peer : roster_.following()) {
    if (const auto last = roster_.last_heartbeat(peer)) newest = std::max(newest, last->head);
  }
  return newest;
}

std::vector<PeerId> Swarm::not_at_the_end() const {
  TW_CHECK(head_ && head_->last);
  std::vector<PeerId> missing;
  for (const Member& m : head_->members) {
    if (m.peer != options_.self.peer && !at_the_end_.contains(m.peer)) missing.push_back(m.peer);
  }
  return missing;
}

Lead::Wait Swarm::waiting() const {
  if (lead_) return lead_->waiting();
  Lead::Wait wait;
  if (!head_) {
    if (options_.founder) {
      const std::size_t missing =
          options_.wait_for - std::min<std::size_t>(options_.wait_for, fresh_.size() + 1);
      wait.why = std::to_string(missing) + " more peers to begin";
    } else {
      wait.why = roster_.open_peers().empty() ? "somebody of the run to answer" : "the first round to begin";
    }
  } else if (const std::optional<PeerId> leads = leader()) {
    wait.peers = {*leads};
    wait.why = acceptor_.plan() ? "the commit of the round" : "work or the call of the round";
  } else {
    for (const Member& m : head_->members) wait.peers.push_back(m.peer);
    wait.why = "any member of the run to answer";
  }
  return wait;
}

}  // namespace tw
