// SPDX-License-Identifier: Apache-2.0
#include "swarm/part.h"

#include "base/check.h"

namespace tw::swarm {

void Part::enter(Standing next) {
  TW_CHECK(next != Standing::fresh);
  TW_CHECK(next != Standing::syncing || standing_ != Standing::syncing);
  TW_CHECK(next != Standing::member || stay_ == Stay::stays);
  TW_CHECK(next != Standing::leaving || stay_ != Stay::stays);
  standing_ = next;
}

void Part::follow(bool as_member) {
  const Standing seated = stay_ == Stay::stays ? Standing::member : Standing::leaving;
  enter(as_member ? seated : Standing::ready);
}

void Part::fall_behind() {
  TW_CHECK(!ended());
  enter(Standing::syncing);
}

bool Part::leave() {
  TW_CHECK(stay_ == Stay::stays);
  stay_ = Stay::leaves;
  if (standing_ != Standing::member) return false;
  enter(Standing::leaving);
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
  TW_CHECK(standing_ == Standing::fresh);
  outset_ = Outset::awaits_company;
}

}  // namespace tw::swarm
