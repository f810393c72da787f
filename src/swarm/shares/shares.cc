// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "swarm/shares/bound.h"

namespace tw::swarm {
namespace {

using wire::Share;

/// Shares change only for a larger gain: bandwidth is measured to a few percent.
constexpr double kWorthNewShares = 1.05;

std::vector<double> equal_parts(const std::vector<Participant>& participants) {
  const auto owners = std::count_if(participants.begin(), participants.end(),
                                    [](const Participant& participant) { return participant.owns; });
  TW_CHECK(owners > 0);
  std::vector<double> parts;
  for (const Participant& participant : participants)
    parts.push_back(participant.owns ? 1.0 / static_cast<double>(owners) : 0);
  return parts;
}

std::vector<double> parts_of(const std::vector<Participant>& participants) {
  std::vector<double> parts = best_split(participants).parts;
  return parts.empty() ? equal_parts(participants) : parts;
}

// The rest after rounding down goes to the largest remainders; among equal ones to the first.
std::vector<std::uint64_t> whole(std::uint64_t segments, const std::vector<double>& parts) {
  std::vector<std::uint64_t> counts;
  std::vector<std::pair<double, std::size_t>> rest;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = parts[i] * static_cast<double>(segments);
    counts.push_back(std::min(static_cast<std::uint64_t>(exact + 1e-9), segments - given));
    given += counts.back();
    if (parts[i] > 0) rest.emplace_back(static_cast<double>(counts.back()) - exact, i);
  }
  // Smaller differences are rounding errors.
  for (auto& [less, i] : rest) less = std::round(less * 1e6);
  std::sort(rest.begin(), rest.end());
  TW_CHECK(given == segments || !rest.empty());
  for (std::size_t k = 0; given < segments; ++k, ++given) ++counts[rest[k % rest.size()].second];
  return counts;
}

bool may_own(const std::vector<Participant>& participants, PeerId peer) {
  return std::any_of(participants.begin(), participants.end(), [&](const Participant& participant) {
    return participant.peer == peer && participant.owns;
  });
}

std::vector<Participant> strangers(const std::vector<PeerId>& owners) {
  std::vector<Participant> participants;
  for (const PeerId peer : owners) participants.push_back({peer});
  return participants;
}

std::uint64_t count_of(const std::vector<Share>& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::uint64_t{0},
                         [](std::uint64_t count, const Share& share) { return count + share.count; });
}

bool all_may_own(const std::vector<Share>& shares, const std::vector<Participant>& participants) {
  return std::all_of(shares.begin(), shares.end(),
                     [&](const Share& share) { return may_own(participants, share.owner); });
}

}  // namespace

void append(std::vector<Share>& shares, const Share& share) {
  if (share.count == 0) return;
  if (!shares.empty() && shares.back().owner == share.owner && shares.back().sealed == share.sealed) {
    shares.back().count += share.count;
  } else {
    shares.push_back(share);
  }
}

std::vector<Share> shares_of(std::uint64_t segments, const std::vector<Participant>& participants,
                             const std::vector<double>& parts) {
  TW_CHECK(parts.size() == participants.size());
  const std::vector<std::uint64_t> counts = whole(segments, parts);
  std::vector<Share> shares;
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    append(shares, {participants[i].peer, first, counts[i], false});
    first += counts[i];
  }
  return shares;
}

std::vector<Share> weighted_shares(std::uint64_t segments, const std::vector<Participant>& participants,
                                   const std::vector<Share>& before) {
  const std::vector<Share> shares = shares_of(segments, participants, parts_of(participants));
  const double seconds = seconds_of(shares, 1, participants);
  const bool fits = seconds > 0 && covers(before, segments) && all_may_own(before, participants);
  if (!fits || seconds_of(before, 1, participants) > kWorthNewShares * seconds) return shares;
  std::vector<Share> same;
  for (Share share : before) {
    share.sealed = false;
    append(same, share);
  }
  return same;
}

std::vector<Share> moved(const std::vector<Share>& before, const RangeSet& segments,
                         const std::vector<Participant>& participants) {
  RangeSet all;
  for (const Share& share : before) all.add(Range{share.first, share.count});
  RangeSet stay = all;
  stay.remove(segments);
  all.remove(stay);  // segments of `segments` that exist
  std::vector<Share> pieces;
  for (const Share& share : before) {
    RangeSet kept = RangeSet(Range{share.first, share.count});
    kept.remove(segments);
    for (const Range& range : kept.ranges())
      pieces.push_back({share.owner, range.first, range.count, share.sealed});
  }
  const std::vector<std::uint64_t> counts = whole(all.count(), parts_of(participants));
  for (std::size_t successor = 0; successor < participants.size(); ++successor) {
    const RangeSet part = all.take(counts[successor]);
    for (const Range& range : part.ranges())
      pieces.push_back({participants[successor].peer, range.first, range.count});
  }
  std::ranges::sort(pieces, {}, &Share::first);
  std::vector<Share> after;
  for (const Share& piece : pieces) append(after, piece);
  return after;
}

std::vector<Share> reown(const std::vector<Share>& before, const std::vector<Participant>& participants) {
  RangeSet gone;
  for (const Share& share : before) {
    if (!may_own(participants, share.owner)) gone.add(Range{share.first, share.count});
  }
  return moved(before, gone, participants);
}

std::vector<Share> equal_shares(std::uint64_t segments, const std::vector<PeerId>& owners) {
  return weighted_shares(segments, strangers(owners));
}

std::vector<Share> reown(const std::vector<Share>& before, const std::vector<PeerId>& owners) {
  return reown(before, strangers(owners));
}

double seconds_of(const std::vector<Share>& shares, std::uint64_t bytes,
                  const std::vector<Participant>& participants) {
  const auto all = static_cast<double>(std::max<std::uint64_t>(1, count_of(shares)));
  std::vector<double> parts(participants.size());
  for (const Share& share : shares) {
    for (std::size_t i = 0; i < participants.size(); ++i) {
      if (participants[i].peer == share.owner) parts[i] += static_cast<double>(share.count) / all;
    }
  }
  return static_cast<double>(bytes) * seconds_per_byte(parts, participants);
}

bool covers(const std::vector<Share>& shares, std::uint64_t segments) {
  std::uint64_t next = 0;
  for (const Share& share : shares) {
    if (share.first != next || share.count > segments - next) return false;
    next += share.count;
  }
  return next == segments;
}

}  // namespace tw::swarm
