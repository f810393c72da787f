// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "wire/messages.h"

namespace tw::swarm {

/// A plan under way. It never changes: a change is another plan with another number. Its owners are the
/// Proposer that made it or the Acceptor that took it, and whoever averages by it or looks back at it.
using SharedPlan = std::shared_ptr<const wire::Plan>;  // owners: see above

inline SharedPlan shared_plan(wire::Plan plan) { return std::make_shared<const wire::Plan>(std::move(plan)); }

/// Plans of a round in their order: of two, the one with the higher number is the newer one.
inline std::pair<Ballot, std::uint32_t> number_of(const wire::Plan& plan) {
  return {plan.ballot, plan.version};
}

}  // namespace tw::swarm
