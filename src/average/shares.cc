// SPDX-License-Identifier: Apache-2.0
#include "average/shares.h"

#include <algorithm>

#include "base/check.h"

namespace tw {
namespace {

void append(std::vector<Share>& shares, const Share& share) {
  if (share.count == 0) return;
  if (!shares.empty() && shares.back().owner == share.owner && shares.back().sealed == share.sealed) {
    shares.back().count += share.count;
  } else {
    shares.push_back(share);
  }
}

}  // namespace

std::vector<Share> equal_shares(std::uint64_t segments, const std::vector<PeerId>& owners) {
  TW_CHECK(!owners.empty());
  std::vector<Share> shares;
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::uint64_t count = segments / owners.size() + (i < segments % owners.size() ? 1 : 0);
    append(shares, {owners[i], first, count, false});
    first += count;
  }
  return shares;
}

std::vector<Share> reown(const std::vector<Share>& before, const std::vector<PeerId>& owners) {
  TW_CHECK(!owners.empty());
  std::vector<Share> after;
  std::vector<PeerId> heirs = owners;
  for (const Share& share : before) {
    if (std::find(owners.begin(), owners.end(), share.owner) != owners.end()) {
      append(after, share);
      continue;
    }
    for (Share part : equal_shares(share.count, heirs)) {
      part.first += share.first;
      append(after, part);
    }
    // Who got one segment less this time comes first the next time.
    const auto got_more = static_cast<std::ptrdiff_t>(share.count % heirs.size());
    std::rotate(heirs.begin(), heirs.begin() + got_more, heirs.end());
  }
  return after;
}

bool covers(const std::vector<Share>& shares, std::uint64_t segments) {
  std::uint64_t next = 0;
  for (const Share& share : shares) {
    if (share.first != next || share.count > segments - next) return false;
    next += share.count;
  }
  return next == segments;
}

}  // namespace tw
