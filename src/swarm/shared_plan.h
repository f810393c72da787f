// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "wire/messages.h"

namespace tw::swarm {

/// A plan under way. It never changes: a change is another plan with another number. Its owners are the
/// Proposer that made it or the Acceptor that took it, and whoever looks back at it.
using SharedPlan = std::shared_ptr<const Plan>;  // owners: see above

}  // namespace tw::swarm
