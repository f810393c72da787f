// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/shares/participant.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Gives the plan a tree of sites by the participants' site names, and each contribution the group of its
/// site. Shares in a site are by bandwidth if bandwidths differ by much, else equal. Roots are spread over
/// all owners, or by the sites' bandwidths if these differ much. A peer whose site has no owner joins the
/// site with most owners. At least one participant must own.
void divide_into_sites(wire::Plan& plan, std::uint64_t segments,
                       const std::vector<Participant>& participants);

/// The same for a later plan of the round: sites, shares and roots stay, except those of peers that are gone
/// or may reduce no more. New participants join others of their site.
void divide_as_before(wire::Plan& plan, const wire::Plan& before,
                      const std::vector<Participant>& participants);

/// Participants came or went; the roots are given, and have what sites that lost an owner had to add. In each
/// site, successors of lost owners (any member, if need be) pass the mean on and take no contributions. A
/// plan without sites, or a malformed one, stays as it is.
void mend_sites(wire::Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants);

}  // namespace tw::swarm
