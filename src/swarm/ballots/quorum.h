// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "base/ids.h"
#include "wire/messages.h"

namespace tw::swarm {

/// True if `present` may decide the round after a record with these members: more than half of them, or
/// exactly half with the first one. Any two such sets share a member, which prevents a second history.
bool is_quorum(const std::vector<wire::Member>& members, const std::set<PeerId>& present);
bool is_quorum_of(const std::vector<PeerId>& members, const std::set<PeerId>& present);

/// Ids in the order of the members.
std::vector<PeerId> ids_of(const std::vector<wire::Member>& members);

/// Ballot b belongs to member b mod n: no other member may lead with it. Members must not be empty.
const wire::Member& ballot_owner(const std::vector<wire::Member>& members, Ballot ballot);

/// No higher ballot is followed. Each lost leader costs one ballot per member, so only a peer that invents
/// numbers gets there. Beyond it next_ballot would wrap around to low ones.
inline constexpr Ballot kHighestBallot = Ballot{1} << 31;

/// The smallest ballot above `above` that belongs to this member.
Ballot next_ballot(const std::vector<wire::Member>& members, PeerId owner, Ballot above);

/// Moves anchors before others; both groups keep their order.
void put_first(const std::set<PeerId>& anchors, std::vector<wire::Member>& members);

/// True if `peer` is a member, under any incarnation.
bool is_member(const std::vector<wire::Member>& members, PeerId peer);

/// True if this very process is a member.
bool names(const std::vector<wire::Member>& members, const wire::Member& process);

/// Record of round 0: the peers that begin, with their parameters.
wire::Record genesis(const Digest& run, const Digest& parameters, std::vector<wire::Member> members);

/// The record with which a run goes on after all its members are gone: the same round with new members,
/// marked as decided without a majority. The update of `record` is already part of the state. The new record
/// goes before `record`, which only non-members still have.
wire::Record begun_anew(const wire::Record& record, std::vector<wire::Member> members);

/// The same from a checkpoint. The round does not count again as decided by a majority: `record` itself goes
/// before, since members may still have it.
wire::Record restarted(const wire::Record& record, std::vector<wire::Member> members);

}  // namespace tw::swarm
