// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/record.h"

/// What a record says of the history that it ends: how many of its samples a majority decided. Histories are
/// compared by it (wire/rank.h), so that a peer which was cut off and went on alone, however fast it is,
/// never takes the run from the others.
namespace tw::swarm {

/// Awaited by a history that a returning peer began from nothing: members that it does not know decided the
/// run's, so that its own sum stands still for ever. No peer has this id.
inline constexpr PeerId kUnknownPeer{0};

/// Sets what the record that follows `head` says of its history (majority_samples, awaited, had_company,
/// restarts), from its samples, its members and its mark.
///
/// The sum stands still from the first decision without a majority on: after it the few that went on are the
/// majority of their own last record. It goes on after a record that names most of the peers which the last
/// decision of a majority had named (exactly half with the first). These are counted by id: a process that
/// was started again under the id of a member has not gone on elsewhere, and only so can a run which was
/// started again from its checkpoints have a majority at all.
void continue_lineage(wire::Record& next, const wire::Record& head);

}  // namespace tw::swarm
