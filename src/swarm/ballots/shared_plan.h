// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "wire/messages.h"

namespace tw::swarm {

/// An immutable plan under way: a change is another plan with another number. Its owners are the Proposer
/// that made it or the Acceptor that took it, and the objects that average by it or look back at it.
using SharedPlan = std::shared_ptr<const wire::Plan>;  // owners: see above

inline SharedPlan shared_plan(wire::Plan plan) { return std::make_shared<const wire::Plan>(std::move(plan)); }

/// Order of the plans of a round: the higher number is newer.
inline std::pair<Ballot, std::uint32_t> number_of(const wire::Plan& plan) {
  return {plan.ballot, plan.version};
}

}  // namespace tw::swarm
