// SPDX-License-Identifier: Apache-2.0
#include "train/session/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "average/reduction/division.h"
#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "train/learn/engine_learner.h"
#include "train/session/session_machine.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

using world::Cause;
using world::Refusal;
using namespace std::chrono_literals;

constexpr Duration kTimer = 250ms;

average::Geometry geometry_of(std::uint64_t parameters, std::uint64_t segment_length) {
  return {parameters, segment_length != 0 ? segment_length : average::usual_segment_length(parameters)};
}

Cause cause_of(Refusal::Code code) {
  switch (code) {
    case Refusal::Code::other:
      return Cause::none;
    case Refusal::Code::version:
      return Cause::version;
    case Refusal::Code::parameters:
      return Cause::parameters;
    case Refusal::Code::run:
      return Cause::run;
    case Refusal::Code::taken:
      return Cause::taken;
    case Refusal::Code::self:
      return Cause::self;
    case Refusal::Code::credential:
      return Cause::credential;
  }
  return Cause::none;
}

std::unique_ptr<Learner> learner_of(Model& model, const SessionOptions& options, const Doors& doors) {
  const EngineLearner::Options engine{options.run,
                                      geometry_of(parameter_count(model), options.segment_length),
                                      options.chunk_bytes, options.grain};
  return std::make_unique<EngineLearner>(model, engine, doors.compute, doors.disk);
}

average::Averager::Options averaging(const SessionOptions& options, const average::Geometry& geometry) {
  const RunOptions& run = options.run;
  return {options.self, geometry, run.codec, run.dithers(), run.norm_cap, options.probe_from, options.rarely};
}

sync::Replica::Options replica_options(const SessionOptions& options, const average::Geometry& geometry,
                                       const ModelSize& size) {
  const codec::Codec codec = codec_of_mean(options.run.codec);
  sync::Replica::Options replica{.fetch = {.run = run_digest(options.run, geometry.length)},
                                 .rarely = options.rarely};
  replica.fetch.state = {size.state_bytes, options.chunk_bytes};
  replica.fetch.mean = {encoded_bytes(codec, geometry), encoded_bytes(codec, geometry.segment_length)};
  replica.fetch.rarely = options.rarely;
  return replica;
}

PeerSearch::Options search_options(const SessionOptions& options) {
  return {options.self, options.join, options.founds(), options.past == Past::begun, options.run.patience};
}

wire::Member caller_of(const wire::Hello& hello) {
  return {hello.peer, hello.address, hello.incarnation, hello.site};
}

}  // namespace

Session::Session(Doors doors, SessionOptions options, Model& model, SessionObserver* observer)
    : Session(doors, options, learner_of(model, options, doors), observer) {}

Session::Session(Doors doors, SessionOptions options, std::unique_ptr<Learner> learner,
                 SessionObserver* observer)
    : machine_(std::make_unique<Machine>(doors, std::move(options), std::move(learner), observer)) {}

Session::~Session() = default;

Result<std::string> Session::start() { return machine_->start(); }

void Session::leave() { machine_->leave(); }

void Session::leave_within(Duration time) { machine_->leave_within(time); }

void Session::set_at_risk(bool at_risk) { machine_->set_at_risk(at_risk); }

void Session::freeze(Duration in, Duration lasts) { machine_->freeze(in, lasts); }

void Session::pause(bool paused) { machine_->pause(paused); }

void Session::tell(const wire::Status& status) { machine_->tell(status); }

void Session::end_run() { machine_->end_run(); }

SessionView Session::view() const { return machine_->view(); }

bool Session::finished() const { return machine_->finished(); }

std::vector<wire::Member> Session::members() const { return machine_->members(); }

std::vector<PeerId> Session::company() const { return machine_->company(); }

const ModelSize& Session::size() const { return machine_->size(); }

// ---- beginning
// ------------------------------------------------------------------------------------------------

Session::Machine::Machine(Doors doors, SessionOptions options, std::unique_ptr<Learner> learner,
                          SessionObserver* observer)
    : meters_{CountedTime(doors.clock), StampedEvents(doors.clock, doors.events),
              CountedNetwork(doors.network)},
      doors_{meters_.time, meters_.network, doors.files, doors.compute,
             doors.disk,   meters_.events,  doors.stores},
      options_(std::move(options)),
      observer_(observer),
      worker_(std::move(learner), {doors_.clock, waits_, [this] { pump(); }, [this] { on_back(); }}),
      geometry_(geometry_of(worker_.size().parameters, options_.segment_length)),
      facts_(options_.run, worker_.size().parameters),
      averager_(averaging(options_, geometry_)),
      replica_(replica_options(options_, geometry_, worker_.size())),
      checkpoints_(options_.run.checkpoint, {to_string(options_.self), facts_.words(), options_.anchor},
                   {meters_.time, doors.files, doors.disk, waits_, [this] { pump(); }}),
      search_(search_options(options_)) {}

Result<std::string> Session::Machine::start() {
  Result<std::string> address = doors_.network.open(options_.listen, *this);
  if (!address.ok()) return address;
  address_ = address.value();
  doors_.network.greet_with(encode(wire::Hello{wire::kProtocolVersion,
                                               facts_.digest(),
                                               options_.self,
                                               geometry_.length,
                                               address_,
                                               options_.incarnation,
                                               options_.site,
                                               {.founds = options_.founds(), .anchor = options_.anchor},
                                               facts_.prints()}));

  const RunOptions& run = options_.run;
  swarm::Swarm::Options swarm;
  swarm.self = self();
  swarm.run = facts_.digest();
  swarm.founder = options_.founds();
  swarm.anchor = options_.anchor;
  swarm.founders_parameters = run.has_own_model();
  swarm.returns = options_.past == Past::begun;
  swarm.wait_for = options_.wait_for;
  swarm.bootstrap = options_.join;
  swarm.lease = {run.target_batch_size, run.microbatch, run.exact_batches};
  swarm.segments = geometry_.segments();
  swarm.grain = worker_.grain();
  swarm.rounds = run.rounds;
  swarm.patience = run.patience;
  swarm.shares = share_rules(
      {encoded_bytes(run.codec, geometry_.length), encoded_bytes(codec_of_mean(run.codec), geometry_.length)},
      run.sites);
  swarm.sum_bytes = geometry_.length * sizeof(float);
  swarm.rarely = options_.rarely;
  swarm_.emplace(std::move(swarm), doors_.clock.now());

  world::Event started{doors_.clock.now(), world::Phase::start, 0};
  started.digest = to_string(facts_.digest());
  started.numbers = {{"last_round", static_cast<double>(run.rounds)}};
  if (options_.anchor) started.numbers.emplace_back("anchor", 1);
  started.texts.emplace_back("address", address_);
  if (!options_.site.empty()) started.texts.emplace_back("site", options_.site);
  doors_.events.emit(started);
  if (options_.founds()) {
    consider_the_past();
  } else {
    begin_history();
  }
  pump();
  return address;
}

void Session::Machine::begin_history() {
  worker_.initialise([this](const Digest& parameters) {
    replica_.begin(parameters);
    swarm_->fresh(doors_.clock.now(), parameters);
  });
}

// ---- network
// --------------------------------------------------------------------------------------------------

world::Admission Session::Machine::admit(const Frame& hello) {
  const std::optional<std::uint32_t> protocol = wire::protocol_of(hello);
  if (protocol && *protocol != wire::kProtocolVersion) {
    return turned_away({fmt::format("protocol version {}, expected {}", *protocol, wire::kProtocolVersion),
                        Refusal::Code::version});
  }
  const Result<wire::Message> message = wire::decode(hello);
  if (!message.ok()) return Refusal{message.error().message};
  const wire::Hello* greeting = std::get_if<wire::Hello>(&message.value());
  if (greeting == nullptr) return Refusal{"expected a hello, got " + std::string(name_of(message.value()))};
  if (std::optional<Refusal> other = of_another_run(*greeting)) return turned_away(*std::move(other));
  const PeerId peer = greeting->peer;
  const wire::Member caller = caller_of(*greeting);
  if (caller.is({options_.self, {}, options_.incarnation}))
    return turned_away({"that is this peer itself", Refusal::Code::self, peer});
  const bool taken = peer == options_.self ||
                     (swarm_->roster().is_open(peer) && !swarm_->roster().is_open(caller)) ||
                     !swarm_->may_link(caller);
  if (taken) {
    swarm_->on_taken(doors_.clock.now(), caller, greeting->marks.founds);
    return turned_away({"peer id " + to_string(peer) + " is taken", Refusal::Code::taken, peer});
  }
  return peer;
}

Refusal Session::Machine::turned_away(Refusal refusal) {
  refuse(cause_of(refusal.code), refusal.peer, refusal.words);
  return refusal;
}

std::optional<Refusal> Session::Machine::of_another_run(const wire::Hello& greeting) const {
  const std::uint32_t place = facts_.first_difference(greeting.facts);
  const std::string expected = place == 0 ? "" : ": expected " + facts_.at(place);
  if (greeting.parameters != geometry_.length) {
    return Refusal{fmt::format("the model has {} parameters, that of this run has {}{}", greeting.parameters,
                               geometry_.length, expected),
                   Refusal::Code::parameters, greeting.peer, place};
  }
  if (greeting.run == facts_.digest()) return std::nullopt;
  return Refusal{"another run" + expected, Refusal::Code::run, greeting.peer, place};
}

void Session::Machine::on_open(PeerId peer, const Frame& hello) {
  if (finished()) return;
  averager_.on_new_link(peer);
  const wire::Hello greeting = std::get<wire::Hello>(wire::decode(hello).value());
  const wire::Member caller = caller_of(greeting);
  waits_.on_answer(caller.address);
  search_.was_admitted(caller.address);
  meters_.network.opened(peer, caller.site);
  swarm_->on_open(doors_.clock.now(), caller, greeting.marks);
  pump();
}

void Session::Machine::on_close(PeerId peer, const std::string& why) {
  if (finished()) return;
  link_is_gone(peer, why);
  pump();
}

void Session::Machine::link_is_gone(PeerId peer, const std::string& why) {
  meters_.network.closed(peer);
  swarm_->on_close(doors_.clock.now(), peer, why);
  forget_link(peer);
}

void Session::Machine::forget_link(PeerId peer) {
  replica_.on_close(peer);
  averager_.on_close(peer, swarm_->head() && swarm::is_member(swarm_->head()->members, peer));
}

PeerSearch::Situation Session::Machine::situation() const {
  const swarm::Roster& roster = swarm_->roster();
  return {swarm_->peer_state(), !roster.open_peers().empty(), !roster.following().empty(),
          worker_.is_taking_over()};
}

void Session::Machine::on_refused(const std::string& address, const world::DialFailure& failure) {
  if (finished()) return;
  swarm_->on_refused(doors_.clock.now(), address);
  if (failure.kind == world::DialFailure::Kind::linked) {
    swarm_->on_linked_there(address);
    waits_.on_answer(address);
    return pump();
  }
  Refusal refusal = failure.why;
  refusal.words += own_side(refusal);
  const std::string& why = refusal.words;
  const bool nobody_there = failure.kind == world::DialFailure::Kind::unreachable;
  const std::string told = nobody_there ? fmt::format("cannot connect to {}: {}", address, why) : why;
  if (!nobody_there || swarm_->peer_state() == wire::PeerState::fresh)
    refuse(search_.asks(address) ? Cause::none : Cause::dial, std::nullopt, told);
  waits_.on_refused(doors_.clock.now(), address, why);
  if (nobody_there) search_.found_nobody(told);
  if (refusal.code != Refusal::Code::other) was_rejected(address, refusal);
  pump();
}

// What this peer has where the others have something else.
std::string Session::Machine::own_side(const Refusal& refusal) const {
  if (refusal.code != Refusal::Code::run && refusal.code != Refusal::Code::parameters) return {};
  const std::string has = refusal.place == 0 ? "" : ", this peer has " + facts_.at(refusal.place);
  return has + (options_.run.has_own_model() ? "; use the same model, data, optimizer and settings"
                                             : "; use the same run file");
}

void Session::Machine::was_rejected(const std::string& address, const Refusal& refusal) {
  if (refusal.code == Refusal::Code::self) swarm_->is_own(address);
  const Instant now = doors_.clock.now();
  search_.was_rejected(now, address, refusal);
  if (search_.is_final(now, address, refusal, situation())) {
    end("cannot join " + address + ": " + refusal.words, true);
  } else if (refusal.code == Refusal::Code::taken && !situation().linked &&
             search_.is_replaced(now, others_of_last_majority())) {
    end(fmt::format("another process takes part under the id of this one, which stood still or was cut "
                    "off: {} answers: {}",
                    address, refusal.words),
        true);
  }
}

// On a new link everything is sent again, so a peer whose messages are valid by then can go on.
void Session::Machine::hang_up_on(PeerId from, const std::string& nonsense) {
  refuse(Cause::message, from, nonsense);
  doors_.network.close(from);
  link_is_gone(from, "sent what cannot be read: " + nonsense);
}

void Session::Machine::on_message(PeerId from, Frame frame) {
  if (finished()) return;  // later messages change nothing that was reported
  const Instant now = doors_.clock.now();
  Result<wire::Message> decoded = wire::decode(frame);
  if (!decoded.ok()) {
    hang_up_on(from, decoded.error().message);
    return pump();
  }
  swarm_->on_sign_of_life(now, from);
  wire::Message& message = decoded.value();
  if (!frame.payload.empty()) {
    const bool asked = std::holds_alternative<wire::Chunk>(message) && replica_.is_catching_up();
    if (const auto bandwidth_report = averager_.on_bytes(now, from, frame.payload.size(), asked))
      doors_.network.send(from, encode(*bandwidth_report));
  }
  if (std::holds_alternative<wire::Scatter>(message) || std::holds_alternative<wire::Gather>(message)) {
    const std::optional<average::Averager::Refused> refused = averager_.on_bulk(now, from, message);
    report_probe();
    if (refused) refuse_bulk(*refused);
  } else if (const auto* segment = std::get_if<wire::EntrustedSum>(&message)) {
    const Status taken = averager_.custody().on_segment(from, *segment);
    if (!taken.ok()) refuse(world::Cause::message, from, taken.error().message);
  } else if (const auto* entrust = std::get_if<wire::Entrust>(&message)) {
    averager_.custody().on_entrust(from, *entrust);
  } else if (const auto* bandwidth_report = std::get_if<wire::BandwidthReport>(&message)) {
    if (averager_.on_bandwidth_report(now, from, *bandwidth_report, swarm_->round_trip(from)))
      doors_.network.pull(from);
  } else if (std::holds_alternative<wire::Padding>(message)) {
    averager_.on_padding(now, from);
  } else if (const auto* status = std::get_if<wire::Status>(&message)) {
    const bool counts = swarm_->head() && swarm::is_member(swarm_->head()->members, from);
    if (counts && is_sound(*status) && observer_ != nullptr) observer_->on_status(from, *status);
  } else if (!on_checkpoint_message(from, message) && !replica_.on_message(now, from, message)) {
    swarm_->on_message(now, from, message);
  }
  pump();
}

std::optional<Frame> Session::Machine::next_bulk(PeerId to) {
  std::optional<wire::Message> message = averager_.next_segment(to);
  report_probe();
  const Instant now = doors_.clock.now();
  if (!message) message = replica_.next_chunk(to, now < averager_.has_lines_until());
  if (!message) message = averager_.next_padding(now, to);
  if (!message) return std::nullopt;
  averager_.handed(now, to);
  Frame frame = encode(*message);
  meters_.network.handed(to, frame);
  return frame;
}

// ---- the loop
// -------------------------------------------------------------------------------------------------

// Turns are taken until none brings anything: a vote decides a round, its record begins the next one, whose
// work begins here. What these steps bring is left to the loop, so none of them calls pump().
void Session::Machine::pump() {
  if (finished()) return;
  TW_CHECK(!std::exchange(pumping_, true));
  while (do_what_swarm_asks() && take_turn()) continue;
  finish_when_done();
  flush();
  if (!finished()) arm();
  pumping_ = false;
}

// False when that was the end.
bool Session::Machine::do_what_swarm_asks() {
  for (std::vector<swarm::Action> actions = swarm_->take_actions(); !actions.empty();
       actions = swarm_->take_actions()) {
    for (const swarm::Action& action : actions) {
      std::visit([&](const auto& asked) { act(asked); }, action);
      if (finished()) return false;
    }
  }
  return true;
}

// False when nothing came of it, or that was the end.
bool Session::Machine::take_turn() {
  bool went_on = open_round();
  went_on |= catch_up_further();
  if (finished()) return false;
  serve_images();
  let_chunks_go();
  went_on |= start_work();
  went_on |= keep_what_came();
  went_on |= go_on_handing_over();
  went_on |= report_averaging();
  if (swarm_->peer_state() == wire::PeerState::member) replica_.joined();
  return !finished() && (went_on || swarm_->has_actions());
}

void Session::Machine::flush() {
  for (const world::Event& event : swarm_->take_events()) doors_.events.emit(event);
  const auto send_all = [&](wire::Outbox messages) {
    for (const wire::Envelope& envelope : messages)
      doors_.network.send(envelope.to, encode(envelope.message));
  };
  send_all(swarm_->take_messages());
  send_all(replica_.take_messages());
  for (PeerId peer : averager_.take_wakeups()) doors_.network.pull(peer);
  for (PeerId peer : replica_.take_wakeups()) doors_.network.pull(peer);
}

void Session::Machine::arm() {
  const Instant now = doors_.clock.now();
  Instant next = std::min(swarm_->next_step(), replica_.next_step());
  if (replica_.holds_chunks()) next = std::min(next, averager_.has_lines_until());
  next = std::min(next, averager_.next_step(now));
  alarm_.set_by(std::clamp(next, now, now + kTimer));
}

void Session::Machine::on_timer() {
  if (finished()) return;
  const Instant now = doors_.clock.now();
  swarm_->measured(averager_.bandwidth());
  swarm_->step(now);
  replica_.step(now);
  for (const PeerId target : averager_.step(now)) doors_.network.pull(target);
  report_probe();
  report_stall();
  if (const std::optional<swarm::WorkItem> late = worker_.take_back_when_late(now)) give_back(late);
  tell_where_the_worker_is();
  watch_waits();
  finish_when_done();
  if (!finished() && departure_.is_overdue(now)) end("left at the end of its notice", false);
  give_up_when_nobody_has_the_state(now);
  go_on_alone_when_nobody_comes(now);
  pump();
}

void Session::Machine::give_up_when_nobody_has_the_state(Instant now) {
  if (const std::optional<std::string> why = search_.gives_up(now, situation())) end(*why, true);
}

void Session::Machine::go_on_alone_when_nobody_comes(Instant now) {
  if (finished()) return;
  ReturnWait& returning = search_.return_wait();
  const bool fresh = swarm_->peer_state() == wire::PeerState::fresh;
  if (returning.stage() == ReturnWait::Stage::waiting) fresh ? ask_for_checkpoints(now) : returning.end();
  if (returning.is_over(now) && !lets_another_resume(now)) {
    ReturnWait::Rest rest = returning.give_up();
    if (rest.checkpoint) return resume(std::move(rest.checkpoint->image));
    if (!rest.trouble.empty()) return end(rest.trouble, true);
    swarm_->go_on_alone(now);
  }
  if (search_.is_alone_for_good(now, swarm_->is_orphaned())) begin_anew_from_tip();
}

void Session::Machine::act(const swarm::Dial& dial) { doors_.network.connect(dial.address); }

void Session::Machine::act(const swarm::Hangup& hangup) {
  doors_.network.close(hangup.peer);
  forget_link(hangup.peer);
}

void Session::Machine::end(const std::string& why, bool failed) {
  if (finished()) return;
  flush();
  averager_.stop_probe();
  tell_of_traffic(true);
  departure_.end(why, failed);
}

void Session::Machine::leave() {
  if (finished()) return;
  if (!departure_.ask_to_leave()) return end("left at once", false);
  swarm_->leave(doors_.clock.now());
  pump();
}

void Session::Machine::leave_within(Duration time) {
  if (finished()) return;
  const Instant now = doors_.clock.now();
  departure_.leave_by(now + time);
  departure_.ask_to_leave();
  swarm_->leave(now, now + time);
  pump();
}

void Session::Machine::set_at_risk(bool at_risk) {
  if (finished() || !swarm_) return;
  swarm_->set_at_risk(doors_.clock.now(), at_risk);
  pump();
}

void Session::Machine::freeze(Duration in, Duration lasts) {
  if (finished() || !swarm_) return;
  const Instant now = doors_.clock.now();
  swarm_->freeze(now, now + in, lasts);
  pump();
}

void Session::Machine::end_run() {
  if (finished() || !swarm_) return;
  swarm_->end_run();
}

// ---- what can be seen
// -----------------------------------------------------------------------------------------

void Session::Machine::emit(world::Phase phase, Round round, std::string why, Numbers numbers) {
  emit({.phase = phase, .round = round, .why = std::move(why), .numbers = std::move(numbers)});
}

void Session::Machine::emit(world::Event event) {
  event.at = doors_.clock.now();
  doors_.events.emit(event);
}

void Session::Machine::refuse(Cause cause, std::optional<PeerId> peer, std::string why) {
  emit({.phase = world::Phase::refuse,
        .round = step_.round,
        .peer = peer,
        .why = std::move(why),
        .cause = cause});
}

void Session::Machine::tell(const wire::Status& status) {
  if (finished() || !swarm_) return;
  const Frame frame = encode(status);
  for (const PeerId peer : swarm_->roster().open_peers()) doors_.network.send(peer, frame);
}

void Session::Machine::tell_of_traffic(bool at_once) {
  const Instant now = doors_.clock.now();
  if (doors_.stores) meters_.network.asked(doors_.stores());
  auto event = at_once ? meters_.network.rest(now, step_.round) : meters_.network.due(now, step_.round);
  if (!event) return;
  const wire::Bandwidth line = averager_.bandwidth();
  if (line.up_bytes_per_s > 0) event->numbers.emplace_back("up_mbit_s", line.up_bytes_per_s * 8e-6);
  if (line.down_bytes_per_s > 0) event->numbers.emplace_back("down_mbit_s", line.down_bytes_per_s * 8e-6);
  doors_.events.emit(*event);
}

std::uint64_t Session::Machine::held_bytes() const {
  return averager_.held_bytes() + replica_.held_bytes() + swarm_->held_bytes();
}

std::vector<PeerId> Session::Machine::company() const {
  std::vector<PeerId> here;
  if (!swarm_) return here;
  const std::vector<PeerId>& open = swarm_->roster().open_peers();
  for (const wire::Member& member : members())
    if (std::ranges::binary_search(open, member.peer)) here.push_back(member.peer);
  return here;
}

std::vector<wire::Member> Session::Machine::members() const {
  return swarm_ && swarm_->head() ? swarm_->head()->members : std::vector<wire::Member>{};
}

SessionView Session::Machine::view() const {
  SessionView view;
  if (swarm_ && swarm_->head()) {
    view.round = swarm_->head()->round;
    view.samples = swarm_->head()->samples_total();
    view.leader = swarm_->leader().value_or(PeerId{});
  }
  if (swarm_ && !finished()) view.waiting = waiting();
  if (swarm_ && !finished()) view.held_bytes = held_bytes();
  view.waiting_updates = worker_.updates_under_way();
  if (swarm_ && swarm_->head() && swarm_->head()->last && view.waiting_updates > 0) --view.waiting_updates;
  view.finished = finished();
  view.ended = departure_.reason();
  view.complete = departure_.complete();
  view.may_try_again = search_.may_try_again();
  view.nothing_is_left = has_lost_the_run();
  if (departure_.failed()) view.failure = departure_.reason();
  return view;
}

}  // namespace tw::train
