// SPDX-License-Identifier: Apache-2.0
#include "swarm/leaving.h"

#include "base/check.h"
#include "base/peer_name.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"

namespace tw::swarm {

using wire::Outlook;
using wire::PeerState;

// ---- this peer leaves

bool Leaving::leave(std::optional<Instant> deadline) {
  if (core_.part.ended()) return false;
  if (deadline) core_.farewell.leave_by(*deadline);
  if (core_.part.stay() != Part::Stay::stays) {
    if (deadline) announcing_.tell_peer_state();
    return false;
  }
  if (core_.part.leave() || (deadline && core_.part.peer_state() == PeerState::ready)) {
    core_.work.drop_queued();
    core_.next_work.reset();
    announcing_.tell_peer_state();
    announcing_.send_progress(true);
  }
  return true;
}

bool Leaving::set_at_risk(bool at_risk) {
  if (core_.part.ended()) return false;
  core_.farewell.set_at_risk(at_risk);
  announcing_.tell_peer_state();
  announcing_.send_progress();
  return true;
}

// A joiner that works for the round it found stays until its work is handed over.
void Leaving::consider() {
  if (!core_.part.leaves()) return;
  const bool has_work = core_.part.peer_state() == PeerState::ready &&
                        core_.farewell.outlook() == Outlook::leaves && !core_.work.progress().empty();
  if (core_.takes_part() && (core_.part.peer_state() == PeerState::leaving || has_work)) {
    for (const wire::Member& m : core_.members()) {
      if (m.is(core_.options.self) || !core_.membership.is_here(m)) continue;
      if (!core_.membership.stances().of(m.peer).leaving) return;
    }
  }
  core_.part.end();
  core_.outputs.ask_owner(Ended{"left"});
}

// ---- what it did goes to another one

void Leaving::take(const wire::HandOver& order) {
  if (core_.farewell.outlook() != Outlook::leaves || !core_.part.leaves()) return;
  if (order.released) return go_early();
  if (core_.acceptor.averages() || !core_.membership.roster().is_open(order.to)) return;
  core_.farewell.order(core_.now, order);
}

void Leaving::hand_over_when_idle() {
  if (core_.farewell.stage() != Farewell::Stage::ordered || !core_.work.idle() || core_.part.ended()) return;
  TW_CHECK(core_.part.leaves());
  HandOver hand_over{core_.farewell.order().to, {}};
  for (const wire::SlotProgress& slot : core_.work.hand_out()) hand_over.slots.push_back(slot.slot);
  core_.farewell.send();
  core_.outputs.ask_owner(std::move(hand_over));
}

bool Leaving::handed_over() {
  const Farewell::Stage stage = core_.farewell.stage();
  if (stage != Farewell::Stage::sending && stage != Farewell::Stage::entrusted) return false;
  const PeerId to = core_.farewell.order().to;
  const bool gives_seat =
      core_.part.is_member() && core_.acceptor.may_give_seat() && core_.farewell.entrust();
  entrust(to, core_.work.hand_out(), gives_seat);
  return true;
}

void Leaving::entrust(PeerId to, std::vector<wire::SlotProgress> slots, bool gives_seat) {
  wire::Entrust entrust{core_.head()->round + 1, core_.acceptor.promised(), std::move(slots), {}};
  if (gives_seat) {
    entrust.seats = core_.acceptor.seats();
    entrust.seats.push_back(core_.options.self.peer);
  }
  core_.send(to, std::move(entrust));
}

void Leaving::leave_seat() {
  if (core_.part.ended() || !core_.takes_part() || !core_.part.is_member()) return;
  if (!core_.acceptor.may_give_seat() || core_.farewell.gave_seat()) return;
  for (const wire::Member& m : core_.members()) {
    if (m.is(core_.options.self) || !core_.membership.is_here(m)) continue;
    if (core_.membership.stances().of(m.peer).leaving) continue;
    core_.farewell.give_seat(m.peer);
    return entrust(m.peer, {}, true);
  }
}

void Leaving::go_early() {
  if (core_.part.ended()) return;
  const std::string left = "left in round " + std::to_string(core_.head()->round + 1);
  if (core_.farewell.stage() == Farewell::Stage::none) {  // it had nothing to hand over
    core_.part.end();
    core_.outputs.ask_owner(Ended{left});
    return;
  }
  TW_CHECK(core_.takes_part() && core_.part.leaves());
  const wire::HandOver& order = core_.farewell.order();
  const std::vector<wire::SlotProgress> slots = core_.work.progress();
  RangeSet done;
  for (const wire::SlotProgress& slot : slots) done.add(slot.done);
  const Round round = core_.head()->round + 1;
  core_.outputs.report(
      {.at = core_.now,
       .round = round,
       .peer = order.to,
       .fact = event::Handover{.bytes = slots.size() * averaged_in(core_.options, round).sum_bytes,
                               .took_s = to_seconds(core_.farewell.since_order(core_.now)),
                               .samples = core_.batch().samples(done),
                               .round_left_s = order.round_left_s}});
  core_.part.end();
  core_.outputs.ask_owner(Ended{left + ": peer " + peer_name(order.to) + " has what this one did"});
}

// ---- what another one did comes here

std::optional<std::vector<std::uint32_t>> Leaving::keep(PeerId from, const wire::Entrust& entrust) {
  const bool of_use = core_.of_this_round(entrust.round) && core_.takes_part() && core_.part.is_member() &&
                      !core_.part.leaves() && !core_.farewell.gave_seat() && is_sound(entrust, core_.batch());
  if (!of_use) return std::nullopt;
  std::vector<std::uint32_t> kept;
  for (const wire::SlotProgress& slot : entrust.slots) {
    const std::optional<std::uint32_t> own = core_.work.keep(slot.done);
    if (!own) break;
    TW_CHECK(*own >= wire::kLeaseSlots && *own < wire::kMostSlots);
    kept.push_back(*own);
  }
  const bool from_member = names(core_.members(), core_.membership.process(from));
  for (PeerId seat : entrust.seats) {
    if (from_member && is_member(core_.members(), seat)) core_.acceptor.take_seat(seat, entrust.promised);
  }
  announcing_.send_progress();
  return kept;
}

// ---- its machine stands still

void Leaving::freeze(Instant now, Instant from, Duration lasts) {
  core_.wake(now);
  core_.farewell.freeze(from, lasts);
  announcing_.tell_peer_state();
}

}  // namespace tw::swarm
