// SPDX-License-Identifier: Apache-2.0
#include "peer/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/result.h"
#include "host/http.h"
#include "host/system/allocation.h"
#include "host/system/hardware.h"
#include "host/system/machine_signs.h"
#include "spot/sources.h"
#include "train/run/run_facts.h"

namespace tw::peer {
namespace {

/// How late a refusal that was counted, or trouble with the log, is reported.
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
/// What a machine has to say of itself before it joins: a metadata service answers within milliseconds, but
/// the first answer of Azure may take two minutes.
constexpr Duration kFirstLook = std::chrono::seconds(3);
/// How long the last messages may take to leave.
constexpr Duration kFarewell = std::chrono::seconds(3);
constexpr Duration kLastMessages = std::chrono::milliseconds(300);  // of one that ends at once: its vote
/// This process leaves the run this long before its machine goes.
constexpr Duration kKeptInHand = std::chrono::seconds(2);
/// Azure: a machine that is moved stands still for a few seconds, 9 at most.
constexpr Duration kLongestFreeze = std::chrono::seconds(9);
/// What a 1 GiB burst held takes 0.5 s of CPU time to be cleared by the kernel when it is used again.
constexpr Duration kReturnMemoryEvery = std::chrono::minutes(5);
/// What a watcher sees is at most so old.
constexpr Duration kTellEvery = std::chrono::seconds(1);

event::Cause cause_of(spot::NoticeKind kind) {
  switch (kind) {
    case spot::NoticeKind::preempt:
      return event::Cause::preempt;
    case spot::NoticeKind::at_risk:
      return event::Cause::at_risk;
    case spot::NoticeKind::maintenance:
      return event::Cause::maintenance;
    case spot::NoticeKind::freeze:
      return event::Cause::freeze;
  }
  return event::Cause::none;
}

/// What `tw profile` reads. Where the program names its tensors, it does so in the lines of its layout.
void add_size(const train::ModelSize& size, const std::string& layout, event::Start& start) {
  start.parameters = size.parameters;
  start.state_bytes = size.state_bytes;
  std::istringstream lines(layout);
  std::uint64_t tensors = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("group ") || line.starts_with("buffer: ")) ++tensors;
  if (tensors > 0) start.tensors = tensors;
}

/// When a process with these notices has to be gone; kNever: none of them says.
Instant last_moment(const std::vector<spot::Notice>& notices) {
  Instant last = kNever;
  for (const spot::Notice& notice : notices)
    if (spot::goes(notice.kind) && notice.deadline != kNever)
      last = std::min(last, notice.deadline - kKeptInHand);
  return last;
}

/// failure: of its session, which has ended; empty: it was asked to leave.
Error does_not_join(const std::string& failure) {
  return {failure.empty() ? "does not join, because it was asked to leave" : failure};
}

/// For monitor/fold/delays.h.
void add_work(const train::SessionView& view, event::Commit& commit) {
  commit.work_s = view.work_s;
  commit.data_s = view.data_s;
  commit.bandwidth = train::bandwidth_facts(view.bandwidth);
  for (const wire::PairRate& slow : view.bandwidth.slow)
    commit.slow.emplace_back(slow.to, slow.bytes_per_s * 8e-6);
}

}  // namespace

Peer::Peer(host::Loop& loop, Options options, Front front)
    : loop_(loop),
      options_(std::move(options)),
      front_(std::move(front)),
      log_(
          loop_, [this](const std::string& line) { warn(line); },
          [this](const std::string& why) { log_is_not_copied(why); }),
      signals_(spot::signals_of(options_.notices, host::read_machine_signs())),
      live_(options_.session.self, loop_, options_.session.run.budget, front_.decisions),
      network_(loop_, options_.session.self, random_,
               [this](event::Cause cause, const std::string& what) {
                 emit({.at = loop_.now(), .why = what, .fact = event::Refuse{.cause = cause}});
               },
               {.tls = options_.tls.get(), .most_streams = options_.most_streams}),
      threads_{{loop_, [this](const std::string& what) { fail("the disk work failed: " + what); }},
               {loop_, [this](const std::string& what) { fail("copying checkpoints failed: " + what); }}} {}

Peer::Peer(host::Loop& loop, world::Executor& compute, Options options, Front front, train::Model& model)
    : Peer(loop, std::move(options), std::move(front)) {
  session_.emplace(doors(compute), options_.session, model, &live_);
}

Peer::Peer(host::Loop& loop, world::Executor& compute, Options options, Front front,
           std::unique_ptr<train::Learner> learner)
    : Peer(loop, std::move(options), std::move(front)) {
  session_.emplace(doors(compute), options_.session, std::move(learner), &live_);
}

train::Doors Peer::doors(world::Executor& compute) {
  return {.clock = loop_,
          .network = network_,
          .files = files_,
          .compute = compute,
          .disk = threads_.disk,
          .copier = threads_.copier,
          .events = *this,
          .stores =
              [this] {
                world::StoreUses uses = files_.uses();
                world::add(uses, log_.uses());
                if (finder_) world::add(uses, finder_->uses());
                if (front_.data) world::add(uses, front_.data());
                return uses;
              },
          .ended =
              [this] {
                if (front_.over) loop_.post(life_.tie(front_.over));
              }};
}

Result<std::string> Peer::start() {
  claim_.emplace(options_.session.run.checkpoint.folder, options_.run_key);
  const std::string taken = claim_->take_soon(loop_, [this] { return finished(); });
  if (!taken.empty()) session_->fail(taken, train::Ending::taken);
  if (!taken.empty()) return Error{taken};
  if (finished()) return does_not_join(view().failure);  // others may train in its folders
  TW_TRY(log_.open(options_));
  TW_TRY(open_viewer());
  for (const std::string& line : options_.warnings) warn(line);
  watch_for_notices();
  if ((watch_ || options_.pays_spot) && options_.session.run.checkpoint.folder.empty())
    warn(
        "there are no checkpoints, and this machine may be taken away: if all peers go at once, the run is "
        "lost; give checkpoint.folder");
  if (const spot::Notice* notice = condemned()) {
    session_->leave(train::Ending::notice);
    return Error{
        fmt::format("does not join, because this machine is about to go: {}", text_of(*notice, loop_.now()))};
  }
  if (finished()) return does_not_join(view().failure);
  const std::string& copies = options_.session.run.checkpoint.to;
  if (host::is_s3(copies))  // better now than when the first checkpoint is done
    TW_TRY(files_.make_folder(copies));
  Result<std::string> address = session_->start();
  if (!address) return address;
  finder_.emplace(
      loop_, options_, address.value(), train::run_digest(options_.session.run, session_->size().parameters),
      PeerFinder::Calls{
          .dial = [this](const std::vector<wire::Member>& peers) { session_->linking().seek(peers); },
          .looked = [this] { session_->linking().looked(); },
          .say = [this](const std::string& line) { warn(line); }});
  for (const spot::Notice& notice : notices_) act_on(notice);
  at(loop_.now(), &Peer::look);
  at(loop_.now() + kReturnMemoryEvery, &Peer::return_memory);
  at(loop_.now() + kTellEvery, &Peer::tell_others);
  return address;
}

void Peer::log_is_not_copied(const std::string& why) {
  emit({.at = loop_.now(),
        .round = view().round,
        .why = why,
        .fact = event::Copy{.cause = event::Cause::failed}});
}

Status Peer::open_viewer() {
  if (!options_.watch) return Unit{};
  auto viewer = Viewer::open(loop_, *options_.watch, [this] { return live_.journal().board(live_.now_s()); });
  if (!viewer) return viewer.error();
  viewer_ = std::move(viewer).value();
  return Unit{};
}

void Peer::watch_for_notices() {
  auto sources = spot::sources_of(options_.notices, host::read_machine_signs());
  if (!sources.empty()) {
    watch_ = std::make_unique<NoticeWatch>(
        loop_, std::make_unique<host::CurlHttp>(loop_), std::move(sources),
        NoticeWatch::Ears{.heed = [this](const spot::Notice& notice) { heed(notice); },
                          .warn = [this](const std::string& line) { warn(line); }});
    watch_->start();
  }
  bool took_signals = false;  // those that came early wait in the loop
  loop_.post([&took_signals] { took_signals = true; });
  const auto looked = [this] { return condemned() != nullptr || !watch_ || watch_->has_looked(); };
  loop_.run_until([&] { return took_signals && looked(); }, kFirstLook);
}

/// A preemption or maintenance, of those that came.
const spot::Notice* Peer::condemned() const {
  const auto found = std::ranges::find_if(notices_, spot::goes, &spot::Notice::kind);
  return found == notices_.end() ? nullptr : &*found;
}

void Peer::heed(const spot::Notice& notice) {
  notices_.push_back(notice);
  files_.end_at(last_moment(notices_));
  if (session_->finished()) return;
  const Instant now = loop_.now();
  event::Notice told{.cause = cause_of(notice.kind), .source = std::string(name_of(notice.source))};
  if (notice.deadline != kNever) told.deadline_s = to_seconds(notice.deadline - now);
  emit({.at = now, .round = view().round, .why = notice.text, .fact = std::move(told)});
  if (finder_.has_value()) act_on(notice);
}

void Peer::act_on(const spot::Notice& notice) {
  const Duration left = notice.deadline == kNever ? Duration{} : notice.deadline - loop_.now();
  switch (notice.kind) {
    case spot::NoticeKind::preempt:
    case spot::NoticeKind::maintenance:
      return session_->leave_within(std::max(Duration{}, left - kKeptInHand));
    case spot::NoticeKind::at_risk:
      return session_->set_at_risk(true);
    case spot::NoticeKind::freeze:
      return session_->freeze(std::max(Duration{}, left), kLongestFreeze);
  }
}

void Peer::take(spot::Signal signal) {
  const spot::Signals::Said said = signals_.take(signal, loop_.now());
  const train::Ending as = signals_.interrupted() ? train::Ending::interrupted : train::Ending::left;
  switch (said.meaning) {
    case spot::Signals::Meaning::nothing:
      return;
    case spot::Signals::Meaning::leave:
      return session_->leave(as);
    case spot::Signals::Meaning::notice:
      return heed(said.notice);
    case spot::Signals::Meaning::leave_at_once:
      return leave_at_once(as);
  }
}

void Peer::leave_at_once(train::Ending as) {
  leaves_at_once_ = finder_.has_value();
  files_.end_at(loop_.now());
  session_->leave_at_once(as);
}

void Peer::tell_order(const data::SampleOrder& order) {
  event::Log log{
      .seed = std::to_string(order.seed()), .dataset = order.dataset_size(), .block = order.block()};
  if (order.begun() > 0) log.begun = order.begun();
  emit({.at = loop_.now(), .why = "samples are those of a data set", .fact = std::move(log)});
}

void Peer::arrive_at_barrier() {
  live_.barrier().arrive(loop_.now(), session_->company());
  session_->tell(live_.status());
  session_->pause(true);
}

bool Peer::pass_barrier() {
  Barrier& barrier = live_.barrier();
  if (!barrier.stands()) return true;
  const std::vector<PeerId> awaited = awaited_at_barrier();
  if (!awaited.empty()) {
    if (const auto waited = barrier.news_of_wait(loop_.now()))
      emit({.at = loop_.now(),
            .round = view().round,
            .why = text_of_barrier(awaited),
            .fact = event::Wait{.peers = awaited, .seconds = to_seconds(*waited)}});
    return false;
  }
  barrier.pass();
  session_->tell(live_.status());
  session_->pause(false);
  return true;
}

void Peer::farewell() {
  const auto at_once = [this] { return leaves_at_once_; };
  for (const wire::Member& member : session_->members()) network_.close(member.peer);
  const auto said = [this] { return network_.flushed() && (!watch_ || !watch_->says_goodbye()); };
  loop_.run_until([&] { return said() || at_once(); }, kFarewell);
  if (at_once()) loop_.run_until([this] { return network_.flushed(); }, kLastMessages);
  if (finder_) finder_->leave(at_once);
  train::Waits waits;
  const auto must_go = [&] {
    const Instant last = last_moment(notices_);
    return at_once() || loop_.now() >= last || (last == kNever && signals_.terminated());
  };
  const auto saved = [&] {  // what this object's end would wait for without a word
    const train::SessionView now = view();
    if (const auto wait = waits.watch(loop_.now(), now.round, now.waiting)) emit(*wait);
    return now.waiting.kind == swarm::Wait::Kind::nothing || !now.failure.empty();
  };
  while (!loop_.run_until([&] { return saved() || must_go(); }, kLookEvery)) continue;
  const bool cut_short = !saved();
  if (const std::string differs = live_.difference_at_the_end(); !differs.empty()) warn(differs);
  for (const world::Event& refusals : refusals_.rest()) tell(refusals);
  const host::LinkBytes bytes = network_.total();
  emit({.at = loop_.now(),
        .round = view().round,
        .why = view().ended,
        .fact = event::Stop{.bytes_sent = bytes.sent, .bytes_received = bytes.received}});
  if (viewer_) viewer_->say_goodbye();
  log_.finish(at_once);
  claim_.reset();
  leaves_at_once_ = leaves_at_once_ || cut_short;
}

void Peer::emit(const world::Event& event) {
  if (event.phase() != world::Phase::refuse) return tell(event);
  if (const auto first = refusals_.take(event)) tell(*first);
}

void Peer::tell(const world::Event& event) {
  const world::Event whole = completed(event);
  log_.emit(whole);
  live_.take(whole);
  if (front_.shown != nullptr) front_.shown->emit(event);
  // At once: others that hear first that this peer has the last record may end before they hear more.
  if (live_.is_urgent(event)) session_->tell(live_.status());
  if (const auto line = troubles_.line_for(event)) warn(*line);
}

void Peer::complete(event::Start& start) const {
  start.microbatch = options_.session.run.microbatch;
  add_size(session_->size(), options_.session.run.layout, start);
  start.insecure = !options_.tls;
  const std::string& folder = options_.session.run.checkpoint.folder;
  start.checkpoints = folder.empty() ? train::CheckpointOptions::kNone : folder;
  start.usd_per_h = options_.usd_per_h;
  const train::BudgetOptions& budget = options_.session.run.budget;
  start.budget_usd = budget.usd;
  start.budget_drains = budget.drains();
  start.hardware = host::hardware_words() + (options_.gpu.empty() ? "" : ", " + options_.gpu);
}

/// What averaging a round costs lies between its call and its commit.
world::Event Peer::completed(world::Event event) {
  if (auto* start = std::get_if<event::Start>(&event.fact)) complete(*start);
  if (auto* call = std::get_if<event::Call>(&event.fact)) call->use = log_.use(network_.total());
  if (auto* commit = std::get_if<event::Commit>(&event.fact)) {
    commit->use = log_.use(network_.total());
    add_work(view(), *commit);
  }
  return event;
}

void Peer::at(Instant when, void (Peer::*call)()) {
  loop_.at(when, life_.tie([this, call] { (this->*call)(); }));
}

void Peer::look() {
  log_.look();
  for (const world::Event& refusals : refusals_.due(loop_.now())) tell(refusals);
  if (!finished()) at(loop_.now() + kLookEvery, &Peer::look);
}

void Peer::tell_others() {
  if (session_->finished()) return;
  finder_->look(*session_);
  session_->tell(live_.status());
  if (const auto word = live_.budget_word()) {
    emit({.at = loop_.now(),
          .round = view().round,
          .why = word->text,
          .fact = event::Budget{.usd = word->usd, .budget_usd = word->budget_usd}});
    if (word->reached && options_.session.run.budget.drains()) session_->end_run(train::EndCause::budget);
  }
  at(loop_.now() + kTellEvery, &Peer::tell_others);
}

void Peer::return_memory() {
  host::return_freed_memory();
  at(loop_.now() + kReturnMemoryEvery, &Peer::return_memory);
}

void Peer::warn(const std::string& line) {
  tell({.at = loop_.now(), .round = view().round, .why = line, .fact = event::Warn{}});
}

}  // namespace tw::peer
