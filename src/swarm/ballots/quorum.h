// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "base/ids.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Whether `present` may decide the round after a record with these members: more than half of them, or
/// exactly half with the first one. Any two such sets share a member, which is what keeps the history single.
bool is_quorum(const std::vector<wire::Member>& members, const std::set<PeerId>& present);
bool is_quorum_of(const std::vector<PeerId>& members, const std::set<PeerId>& present);

/// In their order.
std::vector<PeerId> ids_of(const std::vector<wire::Member>& members);

/// Ballot b belongs to member b mod n: nobody else may lead with it. Members must not be empty.
const wire::Member& ballot_owner(const std::vector<wire::Member>& members, Ballot ballot);

/// No higher one is followed or counts as followed: each loss of a leader costs one ballot for each member,
/// so that only a peer that makes up numbers gets there. Beyond it next_ballot would come back to low ones.
inline constexpr Ballot kHighestBallot = Ballot{1} << 31;

/// The smallest ballot above `above` that belongs to this member.
Ballot next_ballot(const std::vector<wire::Member>& members, PeerId owner, Ballot above);

/// Anchors before others, each in the order of before.
void put_first(const std::set<PeerId>& anchors, std::vector<wire::Member>& members);

/// Under any incarnation.
bool is_member(const std::vector<wire::Member>& members, PeerId peer);

/// This very process.
bool names(const std::vector<wire::Member>& members, const wire::Member& process);

/// Round 0: the peers that begin, with their parameters.
wire::Record genesis(const Digest& run, const Digest& parameters, std::vector<wire::Member> members);

/// A run that goes on from a state that no member has any more, after all its members were gone: the same
/// round once more, with new members, marked as a decision without majority. The update of the record is part
/// of the state already. It goes before the record itself, which only those have who are no members.
wire::Record begun_anew(const wire::Record& record, std::vector<wire::Member> members);

/// The same from a checkpoint. The round itself does not count as decided by a majority again: the record
/// itself goes before, which members may still have.
wire::Record restarted(const wire::Record& record, std::vector<wire::Member> members);

}  // namespace tw::swarm
