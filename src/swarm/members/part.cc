// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/part.h"

#include "base/check.h"

namespace tw::swarm {

using wire::PeerState;

void Part::enter(PeerState next) {
  TW_CHECK(next != PeerState::fresh);
  TW_CHECK(next != PeerState::syncing || peer_state_ != PeerState::syncing);
  TW_CHECK(next != PeerState::member || stay_ == Stay::stays);
  TW_CHECK(next != PeerState::leaving || stay_ != Stay::stays);
  peer_state_ = next;
}

void Part::follow(bool as_member) {
  const PeerState seated = stay_ == Stay::stays ? PeerState::member : PeerState::leaving;
  enter(as_member ? seated : PeerState::ready);
}

void Part::fall_behind() {
  TW_CHECK(!ended());
  enter(PeerState::syncing);
}

bool Part::leave() {
  TW_CHECK(stay_ == Stay::stays);
  stay_ = Stay::leaves;
  if (peer_state_ != PeerState::member) return false;
  enter(PeerState::leaving);
  return true;
}

void Part::end() {
  TW_CHECK(!ended());
  stay_ = Stay::ended;
}

void Part::go_on_alone() {
  if (outset_ == Outset::awaits_others) outset_ = Outset::free;
}

void Part::begin_anew() {
  TW_CHECK(peer_state_ == PeerState::fresh);
  outset_ = Outset::awaits_company;
}

}  // namespace tw::swarm
