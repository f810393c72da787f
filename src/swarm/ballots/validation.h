// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "swarm/leases/lease_book.h"
#include "wire/limits.h"
#include "wire/messages.h"

/// What a message of another peer may say at all. A peer that follows the protocol never says anything
/// else, in whatever order its messages arrive.
namespace tw::swarm {

/// Why no correct leader can make a record out of this draft after `head`; empty when one can.
std::string fault_of(const wire::Record& draft, const wire::Record& head, const LeaseBook::Options& lease);

/// Not longer, and of no higher ballot, than anything true could be.
bool is_sound(const wire::Progress& progress, const LeaseBook::Options& lease);

/// They are microbatches of the batch.
bool is_sound(const wire::Failures& failures, const LeaseBook::Options& lease);

/// Its sums are of microbatches of the batch, each in another slot.
bool is_sound(const wire::Entrust& entrust, const LeaseBook::Options& lease);

}  // namespace tw::swarm
