// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "swarm/ballots/test_records.h"
#include "swarm/test_pool_peer.h"

namespace tw::swarm {

/// Swarms on one virtual clock, joined by links of 5 ms. Each has an owner that stands for a session,
/// simplified: a mean is complete at a peer once all contributions of its plan were handed in, even by peers
/// that died since.
class Pool {
 public:
  using Setup = PoolSetup;
  using Peer = PoolPeer;

  explicit Pool(Setup setup) : setup_(std::move(setup)) {}

  Pool() : Pool(Setup{}) {}

  /// The process that was started last under this id.
  wire::Member process(std::uint64_t id) const { return {{id}, member(id).address, incarnations_.at(id)}; }

  /// Starts a process. Without a token the first one founds, and the others know only its address.
  void start(std::uint64_t id, bool returns = false) {
    Swarm::Options options{.self = member(id),
                           .run = digest_of(std::string("run")),
                           .anchor = setup_.anchors.contains(id),
                           .returns = returns,
                           .wait_for = setup_.wait_for,
                           .lease = setup_.lease,
                           .averaged = {{.segments = 12}},
                           .rounds = setup_.rounds,
                           .patience = setup_.patience};
    if (setup_.token.empty()) setup_.token = {id};
    options.founder = id == *setup_.token.begin();
    for (const std::uint64_t named : setup_.token)
      if (named != id) options.bootstrap.push_back(member(named).address);
    options.self.incarnation = ++incarnations_[id];
    peers_[id] = {.swarm = std::make_unique<Swarm>(options, now_)};
    at(id).fresh(now_, digest_of(std::string("seed")));
  }

  /// The members of the genesis record: 1 to count.
  void start_all(std::uint32_t count) {
    setup_.wait_for = count;
    for (std::uint64_t id = 1; id <= count; ++id) start(id);
  }

  Swarm& at(std::uint64_t id) { return *peers_.at(id).swarm; }

  Peer& peer(std::uint64_t id) { return peers_.at(id); }

  Instant now() const { return now_; }

  Round round_of(std::uint64_t id) { return at(id).head() ? at(id).head()->round : 0; }

  void kill(std::uint64_t id) {
    peer(id).alive = false;
    for (auto& [other, p] : peers_) cut(id, other);
  }

  /// The link breaks, and no other comes up between them until heal().
  void sever(std::uint64_t a, std::uint64_t b) {
    severed_.insert(std::minmax(a, b));
    cut(a, b);
  }

  void heal() { severed_.clear(); }

  /// Messages for which this is true get lost.
  std::function<bool(std::uint64_t from, std::uint64_t to, const wire::Message&)> drop =
      [](auto, auto, const auto&) { return false; };

  /// The mean does not become complete at peers for which this is true.
  std::function<bool(std::uint64_t id)> mean_stays_away = [](auto) { return false; };

  /// The peer cannot have this sample of the run. Peers of `skip` go on without, when nobody has it.
  std::function<bool(std::uint64_t id, std::uint64_t sample)> lacks = [](auto, auto) { return false; };
  std::set<std::uint64_t> skip;

  void run_for(Duration duration) {
    for (const Instant end = now_ + duration; now_ < end;) moment();
  }

  ::testing::AssertionResult comes(const std::function<bool()>& what,
                                   Duration limit = std::chrono::seconds(30)) {
    for (const Instant end = now_ + limit; now_ < end; moment()) {
      if (what()) return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "not within " << to_seconds(limit) << " s";
  }

  auto reaches(std::uint64_t id, Round round) {
    return comes([this, id, round] { return round_of(id) >= round; });
  }

 private:
  static constexpr Duration kMoment = std::chrono::milliseconds(5);
  static constexpr Duration kStateTransfer = std::chrono::milliseconds(200);
  static constexpr Duration kSumTransfer = std::chrono::milliseconds(100);

  struct Letter {
    std::uint64_t from;
    std::uint64_t to;
    wire::Message message;
  };

  void moment() {
    now_ += kMoment;
    for (std::deque<Letter> due = std::exchange(letters_, {}); !due.empty(); due.pop_front()) {
      const Letter& letter = due.front();
      if (!linked(letter.from, letter.to) || drop(letter.from, letter.to, letter.message)) continue;
      if (peer(letter.to).stopped) {
        letters_.push_back(letter);
      } else if (const auto* entrust = std::get_if<wire::Entrust>(&letter.message)) {
        at(letter.to).keep(now_, PeerId{letter.from}, *entrust);
      } else {
        at(letter.to).on_message(now_, PeerId{letter.from}, letter.message);
      }
    }
    for (auto& [id, p] : peers_) {
      if (!p.alive || p.stopped) continue;
      for (const PeerId other : std::exchange(p.closed, {})) p.swarm->on_close(now_, other, "the link broke");
      if (now_ >= p.swarm->next_step()) p.swarm->step(now_);
      work(id, p);
      average(id, p);
      if (now_ >= p.begins_at) restore(p);
      if (now_ >= p.handed_at) {
        p.handed_at = kNever;
        p.swarm->handed_over(now_);
      }
      act(id, p);
    }
  }

  std::optional<FailedSample> missing_of(std::uint64_t id, const WorkItem& item) const {
    for (const Range& range : item.samples.ranges())
      for (std::uint64_t s = range.first; s < range.end(); ++s)
        if (!item.skips && lacks(id, s))
          return FailedSample{s, "a.tar, bytes 0-9: sample " + std::to_string(s), skip.contains(id)};
    return std::nullopt;
  }

  void work(std::uint64_t id, Peer& p) {
    const bool due = p.computing && now_ >= p.computed_at;
    const auto missing = due ? missing_of(id, *p.computing) : std::nullopt;
    if (missing) {
      p.swarm->give_back(now_, *std::exchange(p.computing, std::nullopt), missing);
    } else if (due) {
      const double speed = static_cast<double>(setup_.lease.microbatch) / to_seconds(p.microbatch_takes);
      p.swarm->finish_work(now_, *std::exchange(p.computing, std::nullopt), {1, speed});
    }
    if (!p.computing && !p.thread_is_away) p.computing = p.swarm->begin_work(now_);
    if (p.computing && p.computed_at <= now_) p.computed_at = now_ + p.microbatch_takes;
  }

  void average(std::uint64_t id, Peer& p) {
    if (!p.plan) return;
    bool complete = true;
    const Work& work = p.swarm->view().work;
    for (const wire::Contribution& c : p.plan->draft.contributors) {
      const auto what = std::tuple(p.plan->draft.parent, c.peer, c.slot, to_string(c.microbatches));
      if (c.peer == PeerId{id} && work.has_done_just(c.slot, c.microbatches)) handed_in_.insert(what);
      complete = complete && handed_in_.contains(what);
    }
    if (!complete || mean_stays_away(id)) return;
    p.swarm->completed(now_, digest_of("mean of " + std::to_string(contribution_set(p.plan->draft))));
    p.plan.reset();
  }

  void restore(Peer& p) {
    const Peer* best = nullptr;
    for (const auto& [id, other] : peers_) {
      if (&other != &p && other.alive && !other.applied.empty() &&
          (!best || goes_before(rank_of(other.applied.back()), rank_of(best->applied.back()))))
        best = &other;
    }
    if (best == nullptr) return;
    p.begins_at = kNever;
    p.plan.reset();
    const wire::Record record = best->applied.back();
    p.applied.push_back(record);
    p.swarm->begin(now_, record, parameters_after(record));
  }

  void act(std::uint64_t id, Peer& p) {
    for (const Action& action : p.swarm->outputs().take_actions()) {
      if (const auto* call = std::get_if<Reduce>(&action)) p.plan = *call->plan;
      if (const auto* catch_up = std::get_if<CatchUp>(&action)) {
        p.catch_ups.push_back(catch_up->why);
        p.begins_at = now_ + kStateTransfer;
      }
      if (const auto* committed = std::get_if<Committed>(&action)) {
        p.plan.reset();
        p.applied.push_back(committed->record);
        p.apply(now_);
      }
      if (std::holds_alternative<HandOver>(action)) p.handed_at = now_ + kSumTransfer;
      if (const auto* end = std::get_if<Ended>(&action)) p.ends.push_back(end->why);
      if (const auto* hangup = std::get_if<Hangup>(&action)) cut(id, hangup->peer.value);
      if (const auto* call = std::get_if<Dial>(&action)) dial(id, call->address);
    }
    std::ranges::move(p.swarm->outputs().take_events(), std::back_inserter(p.events));
    for (auto& e : p.swarm->outputs().take_messages())
      letters_.push_back({id, e.to.value, std::move(e.message)});
  }

  void dial(std::uint64_t id, const std::string& address) {
    const std::uint64_t to = std::stoull(address.substr(1));
    const auto found = peers_.find(to);
    const bool runs = found != peers_.end() && found->second.alive && !found->second.stopped;
    const bool refuses = !runs || to == id || severed_.contains(std::minmax(id, to));
    if (refuses) return at(id).membership().roster().refused(now_, address);
    if (!links_.insert(std::minmax(id, to)).second) return;
    at(id).on_open(now_, process(to), marks_of(to));
    at(to).on_open(now_, process(id), marks_of(id));
  }

  wire::Marks marks_of(std::uint64_t id) const {
    return {.founds = id == *setup_.token.begin(), .anchor = setup_.anchors.contains(id)};
  }

  bool linked(std::uint64_t a, std::uint64_t b) const { return links_.contains(std::minmax(a, b)); }

  void cut(std::uint64_t a, std::uint64_t b) {
    if (links_.erase(std::minmax(a, b)) == 0) return;
    peer(a).closed.emplace_back(b);
    peer(b).closed.emplace_back(a);
  }

  Setup setup_;
  Instant now_ = Instant{} + std::chrono::hours(1);
  std::map<std::uint64_t, Peer> peers_;
  std::map<std::uint64_t, std::uint64_t> incarnations_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> links_, severed_;
  std::deque<Letter> letters_;
  std::set<std::tuple<Digest, PeerId, std::uint32_t, std::string>> handed_in_;
};

}  // namespace tw::swarm
