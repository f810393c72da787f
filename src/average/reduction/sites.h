// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/ballots/share_rules.h"
#include "wire/messages.h"

namespace tw::average {

/// Gives the plan a tree of sites by the participants' site names, with shares in each by what their lines
/// carry where these seem to differ by much, and roots spread over all owners (where sites carry very unequal
/// amounts, by these); and each contribution the group of its contributor's site. A peer at a site where
/// nobody may own goes to the one with most owners. At least one participant owns.
void divide_into_sites(wire::Plan& plan, std::uint64_t segments,
                       const std::vector<swarm::Participant>& participants);

/// The same for a plan that follows another one of the round: sites, shares and roots stay but for those of
/// peers that are gone or own no more; new participants go where others of their site are.
void divide_as_before(wire::Plan& plan, const wire::Plan& before,
                      const std::vector<swarm::Participant>& participants);

/// Participants came or went, and the roots are given, which have what the sites that lost an owner had to
/// add: in each site, owners that are gone have successors, any member if it comes to that, who pass the mean
/// on and take no contributions. A plan without sites stays as it is, and a malformed one.
void mend_sites(wire::Plan& plan, std::uint64_t segments,
                const std::vector<swarm::Participant>& participants);

}  // namespace tw::average
