// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/ballots/share_rules.h"

namespace tw::average {

/// Parts of a vector by hand, whose sum is 1, and the time in which lines alone let it be averaged so.
///
/// With n participants of which i sends c_i vectors (C together) and reduces the part x_i: out of i go
/// c_i (1 - x_i) + x_i (n - 1) vectors, into it 1 - x_i + x_i (C - c_i), and from i to j c_i x_j + x_i.
struct Split {
  std::vector<double> parts;
  double seconds_per_byte = 0;  ///< of the encoded vector
};

/// The split that takes least time; nothing when no line is known. Unknown lines count as in
/// fill_in_lines. With everybody an owner and a contributor and b_i = min(up, down) its time is
/// max(1 / b_min, 2 (n - 1) / sum b), and the part of i is in proportion to T b_i - 1, or, where the
/// slowest line decides and others have much to spare, to 0.85 T b_i - 1: a peer with little to spare gets
/// nothing. Rates of single pairs count where they bind, unless there are so many participants (hundreds)
/// that each pair carries little.
Split best_split(std::vector<swarm::Participant> participants);

/// T*: the time below which no shares can bring the averaging of a vector of so many encoded bytes. 0 when no
/// line is known.
double bound_seconds(std::uint64_t bytes, const std::vector<swarm::Participant>& participants);

/// Unknown lines become the median of the known ones at their site, or of all; false when none is known.
bool fill_in_lines(std::vector<swarm::Participant>& participants);

/// The time that these parts take; 0 when no line is known.
double seconds_per_byte(const std::vector<double>& parts, std::vector<swarm::Participant> participants);

}  // namespace tw::average
