// SPDX-License-Identifier: Apache-2.0
#include "average/probe.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tw {
namespace {

constexpr Duration kLasts = std::chrono::seconds(1);
/// A stream needs some to reach its window, and what arrived is told a round trip later.
constexpr int kRoundTrips = 4;
constexpr std::uint64_t kMostVectors = 16;
constexpr std::size_t kMostTargets = 8;

std::vector<PeerId> first_of_sites(const std::vector<Member>& members) {
  std::set<std::string> seen;
  std::vector<PeerId> firsts;
  for (const Member& member : members) {
    if (member.site.empty() || seen.insert(member.site).second) firsts.push_back(member.peer);
  }
  return firsts;
}

}  // namespace

std::vector<PeerId> Probe::targets(PeerId self, const std::vector<Member>& members) {
  std::vector<PeerId> firsts = first_of_sites(members);
  const auto own = std::ranges::find(firsts, self);
  if (own == firsts.end()) return {};
  std::rotate(firsts.begin(), own, firsts.end());  // so that each is probed by as many as it probes
  firsts.erase(firsts.begin());
  if (firsts.size() > kMostTargets) firsts.resize(kMostTargets);
  return firsts;
}

void Probe::begin(Instant now, const std::vector<PeerId>& targets, Duration round_trip, Sizes sizes) {
  if (std::exchange(begun_, true)) return;
  targets_ = {targets.begin(), targets.end()};
  until_ = now + kLasts + kRoundTrips * std::min(round_trip, kLasts);
  left_ = kMostVectors * sizes.vector_bytes;
  filling_ = Blob(std::vector<std::byte>(sizes.segment_bytes));
}

std::optional<Message> Probe::next_bulk(Instant now, PeerId to) {
  if (is_over(now) || !targets_.contains(to)) return std::nullopt;
  left_ -= std::min<std::uint64_t>(left_, filling_.size());
  return Padding{filling_};
}

}  // namespace tw
