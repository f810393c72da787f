// SPDX-License-Identifier: Apache-2.0
#include "bind/peer_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <string>
#include <utility>

#include "bind/shard_data.h"
#include "host/system/environment.h"
#include "host/system/signal_tap.h"
#include "host/system/standard_streams.h"
#include "monitor/logs/event_log_json.h"
#include "swarm/ballots/quorum.h"

namespace tw::bind {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(10);
constexpr std::size_t kMostEvents = 4096;
constexpr std::size_t kMostTotals = 16;
constexpr auto kRefreshWithin = std::chrono::seconds(1);

}  // namespace

std::optional<spot::Signal> notice_of(int signal) {
  switch (signal) {
    case SIGINT:
      return spot::Signal::interrupt;
    case SIGTERM:
      return spot::Signal::terminate;
    case SIGHUP:
      return spot::Signal::hangup;
    case SIGUSR1:
    case SIGUSR2:
      return spot::Signal::user;
    default:
      return std::nullopt;
  }
}

PeerThread::PeerThread(Plan plan, std::vector<float> initial)
    : plan_(std::move(plan)),
      work_(plan_.model.tensor_sizes, std::move(initial), plan_.callbacks),
      verdict_(host::environment_value("TRADEWIND_VERDICT")),
      launcher_(host::environment_value("TRADEWIND_LAUNCHER")),
      shared_{.narrator = Narrator::of(plan_.links)} {
  const train::SessionOptions& session = plan_.links.session;
  const average::Fragments fragments = fragments_of(session.run, work_);
  // owners: see state()
  state_ = std::make_shared<train::TrainState>(
      work_, session.run, fragments,
      make_caller_optimizer(plan_.model, plan_.callbacks, session.averaging.threads), hooks());
  const auto failed = [this](const std::string& what) { peer_->fail("training failed: " + what); };
  executor_ = std::make_unique<host::CallerExecutor>(loop_, failed);
  beside_ = std::make_unique<host::ThreadExecutor>(loop_, failed);
  const train::EngineLearner::Options options{
      .run = session.run, .fragments = fragments, .chunk_bytes = session.chunk_bytes};
  auto engine = std::make_unique<train::EngineLearner>(state_, options, *executor_, *beside_);
  auto learner = std::make_unique<CallerLearner>(std::move(engine), plan_.grain);
  learner_ = learner.get();
  peer_.emplace(loop_, *executor_, std::move(plan_.links),
                peer::Front{.shown = this,
                            .over = [this] { loop_.stop(); },
                            .data = [before = data_uses()] { return data_uses(before); }},
                std::move(learner));
  thread_ = std::thread([this] { run(); });
}

/// Callbacks of the program; one that fails ends the peer, and is_loading() with it.
train::StateHooks PeerThread::hooks() {
  train::StateHooks hooks = hooks_of(plan_.model, plan_.callbacks, plan_.links.session.averaging.threads);
  hooks.changed = [this, load = std::move(hooks.changed)](Round round, bool restored) {
    is_loading_ = true;
    load(round, restored);
    is_loading_ = false;
  };
  return hooks;
}

PeerThread::~PeerThread() {
  close();
  thread_.join();
  over_ = true;
  write_evaluations();
  say_news();
}

Result<std::string> PeerThread::started() {
  Result<std::string> address = started_.get_future().get();
  say_news();
  return address;
}

void PeerThread::say_news() {
  std::vector<std::string> warnings;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    warnings.swap(shared_.warnings);
    text = shared_.narrator.take_text(over_);
  }
  for (const std::string& line : warnings) plan_.callbacks.warn(line);
  if (!text.empty()) host::write_to_stderr(text);
}

/// How others join this peer and see the run.
void PeerThread::invite() {
  const peer::Options& options = peer_->options();
  const std::string watch = peer_->how_to_watch();
  const std::lock_guard lock(mutex_);
  Narrator& narrator = shared_.narrator;
  if (!options.tls)
    narrator.say("without TLS (insecure): anybody on the network can read and change this run");
  narrator.say(peer::checkpoint_words(options.session.run.checkpoint));
  if (address_.empty()) {
    narrator.say("dials others, and listens nowhere");
  } else {
    narrator.say(options.admission.empty()
                     ? "listening on " + address_
                     : fmt::format("others join with: join={} {}", address_, options.admission));
  }
  std::istringstream lines(watch.empty() ? "" : "watch: " + watch);
  for (std::string line; std::getline(lines, line);) narrator.announce(line);
}

void PeerThread::run() {
  verdict_.join();
  count_from(plan_.begun);
  const Result<std::string> address = peer_->start();
  if (address) {
    address_ = address.value();
    invite();
    keep_looking();
  }
  if (!address) {
    look();
    say_end();
  }
  started_.set_value(address);
  if (address) {
    loop_.run();
    failure_ = peer_->view().failure;
    look();
    say_end();
    const std::string ended = peer_->view().ended;
    const std::lock_guard lock(mutex_);
    shared_.is_last = true;
    refreshed_.notify_all();
    const bool came_late = peer_->ending() == train::Ending::complete && !verdict_.has_begun();
    if (failure_.empty() && !ended.empty())
      came_late ? shared_.narrator.insist(ended) : shared_.narrator.say(ended);
  }
  if (address) {
    executor_->stop();
    peer_->farewell();
  }
  executor_->stop();
  ended_ = true;
}

void PeerThread::say_end() {
  verdict_.end(peer_->ending(), {.unsaved = !peer_->troubles().unsaved().empty(),
                                 .differs = !peer_->live().difference_at_the_end().empty()});
}

void PeerThread::look() {
  for (const int signal : host::take_tapped_signals())
    if (const auto notice = notice_of(signal)) heed(*notice);
  const auto gone = launcher_.take_end(loop_.now());
  if (gone && peer_->ending() == train::Ending::none) {
    peer_->emit({.at = loop_.now(),
                 .round = peer_->view().round,
                 .why = fmt::format("tw run (process {}) is gone: leaving the run", *gone),
                 .fact = event::Warn{}});
    heed(spot::Signal::hangup);
  }
  refresh();
}

/// The farewell runs the loop, too: a signal may end it.
void PeerThread::keep_looking() {
  look();
  loop_.at(loop_.now() + kLookEvery, [this] { keep_looking(); });
}

// The program waits in tw_close: a person who interrupts that means it.
void PeerThread::heed(spot::Signal signal) {
  verdict_.leave();
  if (signal == spot::Signal::interrupt && verdict_.closes() && peer_->finished())
    return peer_->leave_at_once(train::Ending::interrupted);
  peer_->take(signal);
}

void PeerThread::refresh() {
  const bool stands = peer_->ending() == train::Ending::none && !peer_->pass_barrier();
  View view{.session = peer_->view(),
            .self = peer_->options().session.self,
            .address = address_,
            .watch = peer_->watch_url(),
            .failure = peer_->view().failure,
            .unsaved = peer_->troubles().unsaved(),
            .differs = peer_->live().difference_at_the_end(),
            .refused = peer_->troubles().refused(),
            .ending = peer_->ending(),
            .target_batch_size = peer_->options().session.run.batch.size.value_or(0),
            .loss = peer_->live().journal().loss()};
  const std::vector<wire::Member> members = peer_->members();
  view.peers = members.size();
  view.member = swarm::is_member(members, view.self);
  view.barriers = peer_->barriers_passed();
  if (stands) view.at_barrier = peer::text_of_barrier(peer_->awaited_at_barrier());
  {
    const std::lock_guard lock(mutex_);
    view.granularity = shared_.view.granularity;
    view.totals = std::move(shared_.view.totals);
    shared_.view = std::move(view);
    shared_.count(shared_.view.session.round, shared_.view.session.samples);
    shared_.seen = shared_.changes;
  }
  refreshed_.notify_all();
}

// The program's parameters may be of a round before the newest one.
void PeerThread::Shared::count(Round round, std::uint64_t samples) {
  auto& totals = view.totals;
  std::erase_if(totals, [round](const auto& total) { return total.first >= round; });
  if (totals.size() >= kMostTotals) totals.erase(totals.begin());
  totals.emplace_back(round, samples);
}

void PeerThread::emit(const world::Event& event) {
  const bool begins = event.phase() == world::Phase::accumulate;
  if (begins) verdict_.begin();
  const std::lock_guard lock(mutex_);
  shared_.events.push_back({peer_->options().session.self, loop_.unix_nanos(), event});
  if (shared_.events.size() > kMostEvents) shared_.events.pop_front();
  if (event.phase() == world::Phase::warn) shared_.warnings.push_back(event.why);
  shared_.narrator.take(event, &peer_->live().journal());
  // What the program can see of the run changes with these: the next view is not older.
  if (begins || event.phase() == world::Phase::apply || event.phase() == world::Phase::restore) {
    ++shared_.changes;
    loop_.post([this] { refresh(); });
  }
  const auto* commit = event.as<event::Commit>();
  if (commit) shared_.count(event.round, commit->samples_total);
  if (commit && commit->samples > 0 && commit->calc_s && commit->comm_s.value_or(0) > 0)
    shared_.view.granularity = *commit->calc_s / *commit->comm_s;
}

View PeerThread::view() const {
  std::unique_lock lock(mutex_);
  refreshed_.wait_for(lock, kRefreshWithin, [this] {
    return shared_.is_last || (!shared_.closes && shared_.seen == shared_.changes);
  });
  return shared_.view;
}

std::string PeerThread::take_events() {
  std::deque<monitor::LogEntry> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(shared_.events);
  }
  std::string text;
  for (const monitor::LogEntry& entry : events) text += to_json_line(entry) + '\n';
  return text;
}

void PeerThread::post(std::function<void(peer::Peer&)> call) {
  loop_.post([this, call = std::move(call)] {
    if (peer_) call(*peer_);
  });
}

void PeerThread::leave(bool at_once) {
  post([this, at_once](peer::Peer& peer) {
    verdict_.leave();
    at_once ? peer.leave_at_once() : peer.leave();
  });
}

void PeerThread::end_run() {
  post([](peer::Peer& peer) { peer.end_run(train::EndCause::program); });
}

void PeerThread::close(bool at_once) {
  {
    const std::lock_guard lock(mutex_);
    shared_.closes = shared_.closes || at_once;
  }
  // One that has ended takes the time of its farewell: the others' copies of its last words, and its cloud.
  post([this, at_once](peer::Peer& peer) {
    if (peer.ending() != train::Ending::none) return;
    verdict_.close();
    // It leaves last, and its state is frozen: it ends when that is saved.
    if (peer.view().waiting.kind == swarm::Wait::Kind::saving) return;
    at_once ? peer.leave_at_once() : peer.leave();
  });
}

void PeerThread::goes_on_from(Round begun) {
  post([this, begun](peer::Peer&) { count_from(begun); });
}

void PeerThread::count_from(Round begun) {
  const Round before = peer_->view().rounds;
  peer_->goes_on_from(begun);
  const Round rounds = peer_->view().rounds;
  const std::lock_guard lock(mutex_);
  if (rounds != before) shared_.narrator.ends_with(rounds);
}

void PeerThread::take(spot::Signal signal) {
  post([this, signal](peer::Peer&) { heed(signal); });
}

void PeerThread::tell_order(const data::SampleOrder& order) {
  post([order](peer::Peer& peer) { peer.tell_order(order); });
}

void PeerThread::warn(std::string text) {
  post([this, text = std::move(text)](peer::Peer& peer) {
    peer.emit({.at = loop_.now(), .round = peer.view().round, .why = text, .fact = event::Warn{}});
  });
}

void PeerThread::tell_evaluation(Evaluation evaluation) {
  {
    const std::lock_guard lock(mutex_);
    shared_.evaluations.push_back(std::move(evaluation));
  }
  if (ended_) return write_evaluations();
  loop_.post([this] { write_evaluations(); });
}

void PeerThread::write_evaluations() {
  std::vector<Evaluation> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(shared_.evaluations);
  }
  for (const Evaluation& one : told)
    peer_->emit({.at = loop_.now(),
                 .round = one.round,
                 .fact = event::Evaluate{.name = one.name, .value = one.value}});
}

void PeerThread::arrive_at_barrier() {
  post([](peer::Peer& peer) {
    if (peer.ending() == train::Ending::none) peer.arrive_at_barrier();
  });
}

void PeerThread::pause(bool paused) {
  post([paused](peer::Peer& peer) { peer.pause(paused); });
}

}  // namespace tw::bind
