// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "wire/messages.h"

namespace tw {

/// Equal shares of all segments for the owners, in their order (sizes differ by one segment at most; no empty
/// ones).
std::vector<Share> equal_shares(std::uint64_t segments, const std::vector<PeerId>& owners);

/// The shares of before, where those of owners that are gone are cut anew among `owners`; the others stay.
std::vector<Share> reown(const std::vector<Share>& before, const std::vector<PeerId>& owners);

/// The shares follow each other from 0 to `segments` without gap or overlap.
bool covers(const std::vector<Share>& shares, std::uint64_t segments);

}  // namespace tw
