// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "swarm/ballots/validation.h"
#include "swarm/swarm.h"

// How this peer leaves, and what it takes over from leaving peers: docs/protocol.md, "Leaving".
namespace tw::swarm {
namespace {

using wire::Outlook;
using wire::PeerState;

}  // namespace

// ---- this peer leaves

void Swarm::leave(Instant now, std::optional<Instant> deadline) {
  wake(now);
  if (part_.ended()) return;
  if (deadline) farewell_.leave_by(*deadline);
  if (part_.stay() != Part::Stay::stays) {
    if (deadline) tell_peer_state();
    return;
  }
  if (part_.leave() || (deadline && peer_state() == PeerState::ready)) {
    work_.drop_queued();
    tell_peer_state();
    send_progress(true);
  }
  settle();
}

void Swarm::set_at_risk(Instant now, bool at_risk) {
  wake(now);
  if (part_.ended()) return;
  farewell_.set_at_risk(at_risk);
  tell_peer_state();
  send_progress();
  settle();
}

// A joiner that works for the round it found stays until its work is handed over.
void Swarm::consider_leaving() {
  if (!part_.leaves()) return;
  const bool has_work =
      peer_state() == PeerState::ready && farewell_.outlook() == Outlook::leaves && !work_.progress().empty();
  if (takes_part() && (peer_state() == PeerState::leaving || has_work)) {
    for (const wire::Member& m : head()->members) {
      if (m.is(options_.self) || !is_here(m)) continue;
      if (!membership_.stances().of(m.peer).leaving) return;
    }
  }
  part_.end();
  ask_owner(Ended{"left"});
}

// ---- what it did goes to another one

void Swarm::receive(PeerId from, const wire::HandOver& order) {
  if (!of_this_round(order.round) || !may_follow(from, order.ballot)) return;
  if (farewell_.outlook() != Outlook::leaves || !part_.leaves()) return;
  if (order.released) return go_early();
  if (acceptor_.averages() || !roster().is_open(order.to)) return;
  farewell_.order(now_, order);
}

void Swarm::hand_over_when_idle() {
  if (farewell_.stage() != Farewell::Stage::ordered || !work_.idle() || part_.ended()) return;
  TW_CHECK(part_.leaves());
  HandOver hand_over{farewell_.order().to, {}};
  for (const wire::SlotProgress& slot : work_.hand_out()) hand_over.slots.push_back(slot.slot);
  farewell_.send();
  ask_owner(std::move(hand_over));
}

void Swarm::handed_over(Instant now) {
  wake(now);
  const Farewell::Stage stage = farewell_.stage();
  if (stage != Farewell::Stage::sending && stage != Farewell::Stage::entrusted) return;
  wire::Entrust entrust{head()->round + 1, acceptor_.promised(), work_.hand_out(), {}};
  if (part_.is_member() && acceptor_.may_give_seat() && farewell_.entrust()) {
    entrust.seats = acceptor_.seats();
    entrust.seats.push_back(options_.self.peer);
  }
  send(farewell_.order().to, std::move(entrust));
  settle();
}

void Swarm::go_early() {
  if (part_.ended()) return;
  if (farewell_.stage() == Farewell::Stage::none) {  // it had nothing to hand over
    part_.end();
    ask_owner(Ended{"left in round " + std::to_string(head()->round + 1)});
    return;
  }
  TW_CHECK(takes_part() && part_.leaves());
  const wire::HandOver& order = farewell_.order();
  const std::vector<wire::SlotProgress> slots = work_.progress();
  RangeSet done;
  for (const wire::SlotProgress& slot : slots) done.add(slot.done);
  world::Event event{now_, world::Phase::handover, head()->round + 1, order.to};
  event.numbers = {{"bytes", static_cast<double>(slots.size() * options_.sum_bytes)},
                   {"took_s", to_seconds(farewell_.since_order(now_))},
                   {"samples", static_cast<double>(options_.lease.samples(done))},
                   {"round_left_s", order.round_left_s}};
  events_.push_back(std::move(event));
  part_.end();
  ask_owner(Ended{"left in round " + std::to_string(head()->round + 1) + ": peer " + to_string(order.to) +
                  " has what this one did"});
}

// ---- what another one did comes here

std::vector<std::uint32_t> Swarm::keep(Instant now, PeerId from, const wire::Entrust& entrust) {
  wake(now);
  std::vector<std::uint32_t> kept;
  const bool of_use = of_this_round(entrust.round) && takes_part() && part_.is_member() && !part_.leaves() &&
                      !farewell_.gave_seat() && is_sound(entrust, options_.lease);
  if (!of_use) return kept;
  for (const wire::SlotProgress& slot : entrust.slots) {
    const std::optional<std::uint32_t> own = work_.keep(slot.done);
    if (!own) break;
    TW_CHECK(*own >= wire::kLeaseSlots && *own < wire::kMostSlots);
    kept.push_back(*own);
  }
  const bool from_member = names(members(), membership_.process(from));
  for (PeerId seat : entrust.seats) {
    if (from_member && is_member(members(), seat)) acceptor_.take_seat(seat, entrust.promised);
  }
  send_progress();
  settle();
  return kept;
}

// ---- its machine stands still

void Swarm::freeze(Instant now, Instant from, Duration lasts) {
  wake(now);
  farewell_.freeze(from, lasts);
  tell_peer_state();
}

}  // namespace tw::swarm
