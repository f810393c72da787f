// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "swarm/leases/lease_book.h"
#include "wire/limits.h"
#include "wire/messages.h"

/// Limits of what a message of another peer may say. A peer that follows the protocol keeps them, in whatever
/// order its messages arrive.
namespace tw::swarm {

/// Why no correct leader can make a record of this draft after `head`; empty when one can.
std::string fault_of(const wire::Record& draft, const wire::Record& head, const LeaseBook::Options& lease);

/// Neither longer nor of a higher ballot than a correct peer's can be.
bool is_sound(const wire::Progress& progress, const LeaseBook::Options& lease);

/// Its microbatches are part of the batch, which is that of the round under way.
bool is_sound(const wire::Failures& failures, const LeaseBook::Options& lease);

/// Its sums are of microbatches of the same batch, each in a slot of its own.
bool is_sound(const wire::Entrust& entrust, const LeaseBook::Options& lease);

}  // namespace tw::swarm
