// SPDX-License-Identifier: Apache-2.0
#include "train/session/session.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "train/learn/engine_learner.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTimer = 250ms;

std::unique_ptr<Learner> learner_of(Model& model, const SessionOptions& options, const Doors& doors) {
  const EngineLearner::Options engine{options.run,
                                      fragments_of(options.run, model, options.averaging.segment_length),
                                      options.chunk_bytes, options.grain};
  return std::make_unique<EngineLearner>(model, engine, doors.compute, doors.disk);
}

/// How the run ended, which is over.
std::string end_text(const Core& core) {
  const Round round = core.swarm.head() ? core.swarm.head()->round : core.last_round();
  if (round >= core.last_round()) return "the run is complete";
  const std::string where = fmt::format("in round {} of {}", round, core.last_round());
  if (const std::optional<wire::RunEnd>& end = core.swarm.view().run_end)
    return fmt::format(
        "the run is over: {} ended it {}",
        end->by == core.options.self ? "this program" : "the program of peer " + to_string(end->by), where);
  return core.options.run.budget.drains() ? "the run is over: its budget is spent"
                                          : "the run is over: it was ended " + where;
}

}  // namespace

Session::Session(Doors doors, SessionOptions options, Model& model, SessionObserver* observer)
    : Session(doors, options, learner_of(model, options, doors), observer) {}

Session::Session(Doors doors, SessionOptions options, std::unique_ptr<Learner> learner,
                 SessionObserver* observer)
    : core_(
          doors, std::move(options), std::move(learner), observer,
          {.then = [this] { pump(); }, .back = [this] { rounds_.on_back(); }, .ends = [this] { on_end(); }}),
      saving_(core_, doors, [this] { pump(); }),
      recovery_(core_, saving_.checkpoints()),
      rounds_(core_, recovery_, saving_),
      resumption_(core_, saving_.checkpoints(), recovery_),
      linking_(core_),
      wait_reason_(core_, linking_, recovery_, resumption_, rounds_),
      ended_(doors.ended),
      alarm_(core_.clock, [this] { on_timer(); }) {}

Result<std::string> Session::start() {
  Result<std::string> address = core_.network.open(core_.options.listen, *this);
  if (!address.ok()) return address;
  core_.address = address.value();
  core_.departure.begin();
  core_.swarm.listens_at(core_.address);
  linking_.begin();
  report_start();
  core_.options.founds() ? resumption_.begin() : recovery_.begin_from_seed();
  pump();
  return address;
}

void Session::report_start() {
  core_.told_last_round = core_.last_round();
  core_.events.emit({.fact = event::Start{.digest = to_string(core_.facts.digest()),
                                          .address = core_.address,
                                          .site = core_.options.site,
                                          .last_round = core_.told_last_round,
                                          .anchor = core_.options.anchor}});
}

// ---- network

void Session::on_open(PeerId peer, const Frame& hello) {
  if (finished()) return;
  rounds_.on_open(peer);
  linking_.on_open(peer, std::get<wire::Hello>(wire::decode(hello).value()));
  pump();
}

void Session::on_close(PeerId peer, const std::string& why) {
  if (finished()) return;
  link_is_gone(peer, why);
  pump();
}

void Session::on_refused(const std::string& address, const world::DialFailure& failure) {
  if (finished()) return;
  linking_.on_refused(address, failure);
  pump();
}

void Session::link_is_gone(PeerId peer, const std::string& why) {
  core_.network.closed(peer);
  core_.swarm.on_close(core_.clock.now(), peer, why);
  forget_link(peer);
}

void Session::forget_link(PeerId peer) {
  recovery_.replica().on_close(peer);
  rounds_.on_close(peer, is_member(peer));
}

bool Session::is_member(PeerId peer) const {
  return core_.swarm.head() && swarm::is_member(core_.swarm.head()->members, peer);
}

// On a new link everything is sent again, so a peer whose messages are valid by then can go on.
void Session::hang_up_on(PeerId from, const std::string& nonsense) {
  core_.refuse(event::Cause::message, from, nonsense);
  core_.network.close(from);
  link_is_gone(from, "sent what cannot be read: " + nonsense);
}

void Session::refuse(const average::Averager::Refused& refused) {
  if (refused.nonsense) return hang_up_on(refused.from, refused.why);
  core_.refuse(event::Cause::message, refused.from, refused.why);
}

void Session::on_message(PeerId from, Frame frame) {
  if (finished()) return;  // later messages change nothing that was reported
  Result<wire::Message> decoded = wire::decode(frame);
  if (decoded.ok()) {
    core_.swarm.membership().on_sign_of_life(core_.clock.now(), from);
    route(from, std::move(decoded).value(), frame.payload.size());
  } else {
    hang_up_on(from, decoded.error().message);
  }
  pump();
}

/// Each message belongs to one object; what none of the others takes is the swarm's.
void Session::route(PeerId from, wire::Message message, std::size_t payload) {
  if (payload > 0) {
    const bool asked = std::holds_alternative<wire::Chunk>(message) && recovery_.replica().is_catching_up();
    rounds_.on_bytes(from, payload, asked);
  }
  if (const auto* status = std::get_if<wire::Status>(&message)) {
    if (is_member(from) && is_sound(*status) && core_.observer != nullptr)
      core_.observer->on_status(from, *status);
    return;
  }
  std::optional<average::Averager::Refused> refused;
  if (rounds_.on_message(from, message, refused)) {
    if (refused) refuse(*refused);
    return;
  }
  const Instant now = core_.clock.now();
  if (!resumption_.on_message(from, message) && !recovery_.replica().on_message(now, from, message))
    core_.swarm.on_message(now, from, message);
}

std::optional<Frame> Session::next_bulk(PeerId to) {
  const std::optional<wire::Message> message = rounds_.next_bulk(to);
  if (!message) return std::nullopt;
  Frame frame = encode(*message);
  core_.network.handed(to, frame);
  return frame;
}

// ---- the loop

// Turns are taken until none brings anything: a vote decides a round, its record begins the next one, whose
// work begins here. What these steps bring is left to the loop, so none of them calls pump().
void Session::pump() {
  if (finished()) return;
  TW_CHECK(!std::exchange(pumping_, true));
  while (do_what_swarm_asks() && take_turn()) continue;
  finish_when_done();
  flush();
  if (!finished()) arm();
  pumping_ = false;
}

// False when that was the end.
bool Session::do_what_swarm_asks() {
  for (std::vector<swarm::Action> actions = core_.swarm.outputs().take_actions(); !actions.empty();
       actions = core_.swarm.outputs().take_actions()) {
    for (const swarm::Action& action : actions) {
      std::visit([&](const auto& asked) { act(asked); }, action);
      if (finished()) return false;
    }
  }
  return true;
}

// False when nothing came of it, or that was the end.
bool Session::take_turn() {
  bool went_on = open_round();
  went_on |= recovery_.go_on_catching_up();
  if (finished()) return false;
  recovery_.serve_images();
  recovery_.let_chunks_go(rounds_.averager().has_lines_until());
  went_on |= rounds_.start_work();
  went_on |= rounds_.keep_what_came();
  went_on |= rounds_.go_on_handing_over();
  went_on |= rounds_.report_averaging();
  if (core_.swarm.peer_state() == wire::PeerState::member) recovery_.replica().joined();
  return !finished() && (went_on || core_.swarm.outputs().has_actions());
}

bool Session::open_round() {
  const auto refused = rounds_.open();
  if (!refused) return false;
  for (const average::Averager::Refused& one : *refused) refuse(one);
  return true;
}

void Session::flush() {
  for (const world::Event& event : core_.swarm.outputs().take_events()) core_.events.emit(event);
  const auto send_all = [&](wire::Outbox messages) {
    for (const wire::Envelope& envelope : messages) core_.network.send(envelope.to, encode(envelope.message));
  };
  send_all(core_.swarm.outputs().take_messages());
  send_all(recovery_.replica().take_messages());
  for (PeerId peer : rounds_.take_wakeups()) core_.network.pull(peer);
  for (PeerId peer : recovery_.replica().take_wakeups()) core_.network.pull(peer);
}

void Session::arm() {
  const Instant now = core_.clock.now();
  const sync::Replica& replica = recovery_.replica();
  Instant next = std::min(core_.swarm.next_step(), replica.next_step());
  if (replica.holds_chunks()) next = std::min(next, rounds_.averager().has_lines_until());
  next = std::min(next, rounds_.averager().next_step(now));
  alarm_.set_by(std::clamp(next, now, now + kTimer));
}

void Session::on_timer() {
  if (finished()) return;
  const Instant now = core_.clock.now();
  core_.swarm.announcing().measured(rounds_.averager().bandwidth());
  core_.swarm.step(now);
  recovery_.replica().step(now);
  rounds_.tick();
  wait_reason_.watch();
  finish_when_done();
  if (!finished() && core_.departure.is_overdue(now)) core_.departure.end("left at the end of its notice");
  if (auto nobody = finished() ? std::nullopt : linking_.found_nobody())
    resumption_.found_nobody(std::move(nobody->why), nobody->ending);
  if (!finished()) resumption_.tick();
  if (!finished() && linking_.is_alone_for_good() && recovery_.can_begin_anew()) {
    rounds_.abandon();
    recovery_.begin_anew();
  }
  pump();
}

// ---- what the swarm asks

void Session::act(const swarm::Hangup& hangup) {
  core_.network.close(hangup.peer);
  forget_link(hangup.peer);
}

void Session::act(const swarm::Reduce& reduce) {
  open_round();
  rounds_.act(reduce);
}

void Session::act(const swarm::CatchUp& catch_up) {
  core_.events.emit({.round = core_.round, .why = catch_up.why, .fact = event::Restore{}});
  if (catch_up.differs && recovery_.computes_other_bits()) return;
  if (catch_up.differs)
    core_.events.emit(
        {.round = core_.round,
         .why = "this peer's parameters are not those of the run, which it fetches again: its "
                "program changes parameters or the optimizer's state between rounds, its optimizer "
                "computes other bits on this machine, or a bit of memory has flipped",
         .fact = event::Warn{}});
  rounds_.abandon();
  recovery_.catch_up(catch_up.differs);
}

void Session::act(const swarm::Ended& ended) {
  const std::optional<wire::Record>& head = core_.swarm.head();
  const bool has_state =
      recovery_.replica().state() == sync::Replica::State::current && head && head->round > 0;
  if (ended.failed) return core_.departure.fail(ended.why);
  const bool asked = core_.departure.stage() != Departure::Stage::running;
  if (!has_state && !asked) return resumption_.came_too_late(ended.why);
  if (!has_state || !saving_.saves_before_it_leaves(ended.why)) core_.departure.end(ended.why);
}

// ---- the end

void Session::finish_when_done() {
  if (!core_.departure.at_the_end() || core_.departure.has_last_jobs() || is_updating(core_.worker) ||
      recovery_.replica().is_catching_up())
    return;
  // A peer that missed the last decision cannot fetch it once all have left. A peer that says so may have a
  // busy thread before it asks.
  const Instant now = core_.clock.now();
  const std::vector<PeerId> missing = core_.swarm.view().not_at_the_end();
  const bool needed = std::ranges::any_of(
      missing, [this](PeerId peer) { return core_.swarm.view().membership.roster().fetches(peer); });
  if (core_.departure.linger(now, !missing.empty(), needed ? now : recovery_.replica().asked_at()))
    core_.departure.end(end_text(core_));
}

// Called by Departure, once.
void Session::on_end() {
  flush();
  rounds_.stop_probe();
  rounds_.report_traffic(true);
  if (ended_) ended_();
}

void Session::leave(Ending as) {
  if (finished()) return;
  const bool first = core_.departure.ask_to_leave(as);
  if (!core_.departure.is_under_way()) return core_.departure.end("left before it had joined");
  if (!first) return;
  core_.swarm.leave(core_.clock.now());
  pump();
}

void Session::leave_at_once(Ending as) {
  if (finished()) return;
  leave(as);
  if (finished()) return;
  core_.swarm.leaving().leave_seat();
  core_.departure.end("left at once");
}

void Session::leave_within(Duration time) {
  if (!core_.departure.is_under_way()) return leave(Ending::notice);
  const Instant now = core_.clock.now();
  core_.departure.leave_by(now + time);
  core_.departure.ask_to_leave(Ending::notice);
  core_.swarm.leave(now, now + time);
  pump();
}

void Session::set_at_risk(bool at_risk) {
  if (!core_.departure.is_under_way()) return;
  core_.swarm.set_at_risk(core_.clock.now(), at_risk);
  pump();
}

void Session::freeze(Duration in, Duration lasts) {
  if (!core_.departure.is_under_way()) return;
  const Instant now = core_.clock.now();
  core_.swarm.leaving().freeze(now, now + in, lasts);
  pump();
}

void Session::pause(bool paused) {
  if (!core_.departure.is_under_way()) return;
  rounds_.pause(paused);
  pump();
}

void Session::end_run(EndCause cause) {
  if (!core_.departure.is_under_way()) return;
  if (cause == EndCause::budget) return core_.swarm.leading().end_run();
  core_.swarm.announcing().end_run(core_.clock.now());
  pump();
}

// ---- what can be seen

void Session::tell(const wire::Status& status) {
  if (!core_.departure.is_under_way()) return;
  const Frame frame = encode(status);
  for (const PeerId peer : core_.swarm.view().membership.roster().open_peers())
    core_.network.send(peer, frame);
}

std::vector<PeerId> Session::company() const {
  std::vector<PeerId> here;
  const std::vector<PeerId>& open = core_.swarm.view().membership.roster().open_peers();
  for (const wire::Member& member : members())
    if (std::ranges::binary_search(open, member.peer)) here.push_back(member.peer);
  return here;
}

std::vector<wire::Member> Session::members() const {
  return core_.swarm.head() ? core_.swarm.head()->members : std::vector<wire::Member>{};
}

SessionView Session::view() const {
  SessionView view;
  view.rounds = core_.last_round();
  const std::optional<wire::Record>& end = resumption_.end();
  const std::optional<wire::Record>& head = end ? end : core_.swarm.head();
  if (head) {
    view.round = head->round;
    view.samples = head->samples_total();
    view.leader = core_.swarm.view().leader().value_or(PeerId{});
    view.eldest = core_.swarm.view().is_eldest();
  }
  if (core_.departure.stage() != Departure::Stage::before) view.waiting = wait_reason_.current();
  if (core_.departure.is_under_way())
    view.held_bytes =
        rounds_.averager().held_bytes() + recovery_.replica().held_bytes() + core_.swarm.held_bytes();
  view.waiting_updates = core_.worker.updates_under_way();
  if (head && head->last && view.waiting_updates > 0) --view.waiting_updates;
  view.work_s = to_seconds(core_.worker.done().work);
  view.data_s = core_.worker.done().data_s;
  view.bandwidth = rounds_.averager().bandwidth();
  view.finished = finished();
  view.ended = core_.departure.reason();
  view.ending = core_.departure.ending();
  if (is_failure(view.ending)) view.failure = core_.departure.reason();
  return view;
}

}  // namespace tw::train
