// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/ballots/share_rules.h"
#include "wire/messages.h"

namespace tw::average {

/// Shares of all segments for those who may own one, by what their lines carry (best_split of
/// average/bandwidth/bound.h) in whole segments; equal ones when no line is known. `before` stays when its
/// owners are the same, and others would take less than 5 % off the time.
std::vector<wire::Share> weighted_shares(std::uint64_t segments,
                                         const std::vector<swarm::Participant>& participants,
                                         const std::vector<wire::Share>& before = {});

/// The shares of before, where these segments are cut among those who may own one, in the proportion of the
/// weighted shares of a new vector; the others stay.
std::vector<wire::Share> moved(const std::vector<wire::Share>& before, const RangeSet& segments,
                               const std::vector<swarm::Participant>& participants);

/// The same for all segments of those who may own none (any more).
std::vector<wire::Share> reown(const std::vector<wire::Share>& before,
                               const std::vector<swarm::Participant>& participants);

/// Equal shares: the same where nothing is known of lines.
std::vector<wire::Share> equal_shares(std::uint64_t segments, const std::vector<PeerId>& owners);
std::vector<wire::Share> reown(const std::vector<wire::Share>& before, const std::vector<PeerId>& owners);

/// For an encoded vector of so many bytes: what averaging with these shares takes at least, by the lines that
/// are known; 0 when none is.
double seconds_of(const std::vector<wire::Share>& shares, std::uint64_t bytes,
                  const std::vector<swarm::Participant>& participants);

/// Shares by parts of the vector whose sum is 1, in whole segments; nobody owns more by rounding than is
/// left.
std::vector<wire::Share> shares_of(std::uint64_t segments,
                                   const std::vector<swarm::Participant>& participants,
                                   const std::vector<double>& parts);

/// Adds a share at the end, to the last one if it is of the same kind.
void append(std::vector<wire::Share>& shares, const wire::Share& share);

/// The shares follow each other from 0 to `segments` without gap or overlap.
bool covers(const std::vector<wire::Share>& shares, std::uint64_t segments);

}  // namespace tw::average
