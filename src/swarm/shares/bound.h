// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/shares/participant.h"

namespace tw::swarm {

/// Parts of a vector whose sum is 1, one for each participant, and the least time of averaging with them.
///
/// With n participants of which i sends c_i vectors (C together) and reduces the part x_i: out of i go c_i (1
/// - x_i) + x_i (n - 1) vectors, into it 1 - x_i + x_i (C - c_i), and from i to j c_i x_j + x_i.
struct Split {
  std::vector<double> parts;
  double seconds_per_byte = 0;  ///< of the encoded vector
};

/// The split that takes least time; nothing when no bandwidth is known. Unknown bandwidths count as in
/// fill_in_lines. If all are owners and contributors and b_i = min(up, down), its time is max(1 / b_min, 2 (n
/// - 1) / sum b). The part of i is in proportion to T b_i - 1, or to 0.85 T b_i - 1 if the slowest peer
/// decides and others have much to spare: a peer with little to spare gets nothing. Rates of single pairs
/// count where they bind, unless there are so many participants (hundreds) that each pair carries little.
Split best_split(std::vector<Participant> participants);

/// T*: the least time in which any shares can average a vector of this encoded size. 0 when no bandwidth is
/// known.
double bound_seconds(std::uint64_t bytes, const std::vector<Participant>& participants);

/// Unknown bandwidths become the median of the known ones of their site, or of all, but no more than that of
/// the same peer in the other direction. False when none is known.
bool fill_in_lines(std::vector<Participant>& participants);

/// Time of averaging with these parts; 0 when no bandwidth is known.
double seconds_per_byte(const std::vector<double>& parts, std::vector<Participant> participants);

}  // namespace tw::swarm
