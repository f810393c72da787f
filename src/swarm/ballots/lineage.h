// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/record.h"

/// Fields of a record about its history: how many of its samples a majority decided. Histories are compared
/// by them (wire/rank.h), so that a peer that was cut off and went on alone never takes the run from the
/// others, however fast it is.
namespace tw::swarm {

/// Awaited by a history that a returning peer began from nothing. It does not know the members that decided
/// the run, so that its own sum stands still for ever. No peer has this id.
inline constexpr PeerId kUnknownPeer{0};

/// Sets the fields of the record after `head` about its history (majority_samples, awaited, had_company,
/// restarts), from its samples, its members and its mark.
///
/// The sum stands still from the first decision without a majority: after it, the few that went on are the
/// majority of their own last record. It goes on after a record that names most members of the last majority
/// decision (exactly half with the first). Members are counted by id, since a process restarted under a
/// member's id has not gone on elsewhere. Only so can a run that was restarted from its checkpoints have a
/// majority at all.
void continue_lineage(wire::Record& next, const wire::Record& head);

}  // namespace tw::swarm
