// SPDX-License-Identifier: Apache-2.0
#include "train/session/search/linking.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "swarm/ballots/quorum.h"
#include "wire/frame.h"

namespace tw::train {
namespace {

using event::Cause;
using world::Refusal;

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

PeerSearch::Options search_options(const SessionOptions& options) {
  return {
      options.self,        options.join, options.meeting.place, options.founds(), options.past == Past::begun,
      options.run.patience};
}

wire::Member caller_of(const wire::Hello& hello) {
  return {hello.peer, hello.address, hello.incarnation, hello.site};
}

}  // namespace

Linking::Linking(Core& core) : core_(core), search_(search_options(core.options)) {}

void Linking::begin() {
  const SessionOptions& options = core_.options;
  core_.network.greet_with(encode(wire::Hello{wire::kProtocolVersion,
                                              core_.facts.digest(),
                                              options.self,
                                              core_.worker.size().parameters,
                                              core_.address,
                                              options.incarnation,
                                              options.site,
                                              {.founds = options.founds(), .anchor = options.anchor},
                                              core_.facts.prints()}));
}

world::Admission Linking::admit(const Frame& hello) {
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
  if (caller.is({core_.options.self, {}, core_.options.incarnation}))
    return turned_away({"that is this peer itself", Refusal::Code::self, peer});
  const bool taken = peer == core_.options.self ||
                     (core_.swarm.view().membership.roster().is_open(peer) &&
                      !core_.swarm.view().membership.roster().is_open(caller)) ||
                     !core_.swarm.view().may_link(caller);
  if (taken) {
    core_.swarm.on_taken(core_.clock.now(), caller, greeting->marks.founds);
    return turned_away({"peer id " + to_string(peer) + " is taken", Refusal::Code::taken, peer});
  }
  return peer;
}

Refusal Linking::turned_away(Refusal refusal) {
  core_.refuse(cause_of(refusal.code), refusal.peer, refusal.words);
  return refusal;
}

std::optional<Refusal> Linking::of_another_run(const wire::Hello& greeting) const {
  const std::uint32_t place = core_.facts.first_difference(greeting.facts);
  const std::string expected = place == 0 ? "" : ": expected " + core_.facts.at(place);
  if (greeting.parameters != core_.worker.size().parameters) {
    return Refusal{fmt::format("the model has {} parameters, that of this run has {}{}", greeting.parameters,
                               core_.worker.size().parameters, expected),
                   Refusal::Code::parameters, greeting.peer, place};
  }
  if (greeting.run == core_.facts.digest()) return std::nullopt;
  return Refusal{"another run" + expected, Refusal::Code::run, greeting.peer, place};
}

void Linking::on_open(PeerId peer, const wire::Hello& greeting) {
  const wire::Member caller = caller_of(greeting);
  core_.waits.on_answer(caller.address);
  search_.was_admitted(caller.address);
  core_.network.opened(peer, caller.site);
  core_.swarm.on_open(core_.clock.now(), caller, greeting.marks);
}

std::optional<Linking::FoundNobody> Linking::found_nobody() {
  std::optional<std::string> why = search_.gives_up(core_.clock.now(), situation());
  if (!why) return std::nullopt;
  return FoundNobody{*std::move(why), search_.may_try_again() ? Ending::unreached : Ending::failed};
}

bool Linking::is_alone() const {
  if (core_.swarm.head() && core_.swarm.head()->last) return false;
  return linked().empty() || (!has_run() && core_.swarm.view().membership.roster().following().empty());
}

void Linking::seek(const std::vector<wire::Member>& peers) {
  for (const wire::Member& peer : peers)
    if (peer.address != core_.address) core_.swarm.membership().roster().learn(peer);
}

PeerSearch::Situation Linking::situation() const {
  const swarm::Roster& roster = core_.swarm.view().membership.roster();
  return {core_.swarm.peer_state(), !roster.open_peers().empty(), !roster.following().empty(),
          core_.worker.is_taking_over()};
}

void Linking::on_refused(const std::string& address, const world::DialFailure& failure) {
  if (core_.departure.ended()) return;
  core_.swarm.membership().roster().refused(core_.clock.now(), address);
  if (failure.kind == world::DialFailure::Kind::linked) {
    core_.swarm.membership().roster().linked_there(address);
    core_.waits.on_answer(address);
    return;
  }
  Refusal refusal = failure.why;
  refusal.words += own_side(refusal);
  const std::string& why = refusal.words;
  const bool nobody_there = failure.kind == world::DialFailure::Kind::unreachable;
  const std::string told = nobody_there ? fmt::format("cannot connect to {}: {}", address, why)
                                        : fmt::format("{}: {}", address, why);
  if (!nobody_there || core_.swarm.peer_state() == wire::PeerState::fresh)
    core_.refuse(search_.asks(address) ? Cause::none : Cause::dial, std::nullopt, told);
  core_.waits.on_refused(core_.clock.now(), address, why);
  if (nobody_there) search_.nobody_answered(told);
  if (refusal.code != Refusal::Code::other) was_rejected(address, refusal);
}

// What this peer has where the others have something else.
std::string Linking::own_side(const Refusal& refusal) const {
  if (refusal.code != Refusal::Code::run && refusal.code != Refusal::Code::parameters) return {};
  const std::string has = refusal.place == 0 ? "" : ", this peer has " + core_.facts.at(refusal.place);
  return has + (core_.options.run.has_own_model() ? "; use the same model, data, optimizer and settings"
                                                  : "; use the same run file");
}

void Linking::was_rejected(const std::string& address, const Refusal& refusal) {
  if (refusal.code == Refusal::Code::self) core_.swarm.membership().roster().is_own(address);
  const Instant now = core_.clock.now();
  search_.was_rejected(now, address, refusal);
  if (search_.is_final(now, address, refusal, situation())) {
    core_.departure.fail("cannot join " + address + ": " + refusal.words);
  } else if (refusal.code == Refusal::Code::taken && !situation().linked &&
             search_.is_replaced(now, others_of_last_majority())) {
    core_.departure.fail(
        fmt::format("another process takes part under the id of this one, which stood still or was cut "
                    "off: {} answers: {}",
                    address, refusal.words));
  }
}

// Their addresses, as far as they are known. None if this very process was no member: whoever comes back
// under its old id waits until the others have noticed the death of the former process.
std::vector<std::string> Linking::others_of_last_majority() const {
  std::vector<std::string> addresses;
  if (!core_.swarm.head() || !swarm::names(core_.swarm.head()->members, core_.self())) return addresses;
  const wire::Record& head = *core_.swarm.head();
  std::vector<PeerId> peers = head.awaited;
  if (peers.empty()) std::ranges::transform(head.members, std::back_inserter(peers), &wire::Member::peer);
  for (const PeerId peer : peers)
    if (peer != core_.options.self)
      addresses.push_back(core_.swarm.view().membership.roster().process(peer).address);
  return addresses;
}

}  // namespace tw::train
