// SPDX-License-Identifier: Apache-2.0
#include "average/bandwidth/probe.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/check.h"
#include "wire/limits.h"

namespace tw::average {
namespace {

constexpr Duration kLasts = std::chrono::seconds(1);
/// A stream needs some round trips to open its window, and arrivals are reported a round trip later.
constexpr int kRoundTrips = 4;
constexpr std::uint64_t kMostVectors = 16;
/// Bytes under way to one peer: at first kFirstUnderWay, then kMore times what it reports per round trip, so
/// that a higher bandwidth shows.
constexpr std::uint64_t kFirstUnderWay = 1024 * 1024;
constexpr double kMore = 2;
constexpr Duration kToldEvery = std::chrono::milliseconds(200);
constexpr std::size_t kMostTargets = 8;

std::vector<PeerId> first_of_sites(const std::vector<wire::Member>& members) {
  std::set<std::string> seen;
  std::vector<PeerId> firsts;
  for (const wire::Member& member : members) {
    if (member.site.empty() || seen.insert(member.site).second) firsts.push_back(member.peer);
  }
  return firsts;
}

}  // namespace

std::vector<PeerId> Probe::targets(PeerId self, const std::vector<wire::Member>& members) {
  std::vector<PeerId> firsts = first_of_sites(members);
  const auto own = std::ranges::find(firsts, self);
  if (own == firsts.end()) return {};
  std::rotate(firsts.begin(), own, firsts.end());  // so that each is probed by as many as it probes
  firsts.erase(firsts.begin());
  if (firsts.size() > kMostTargets) firsts.resize(kMostTargets);
  return firsts;
}

void Probe::begin(Instant now, const std::vector<PeerId>& targets, Sizes sizes) {
  TW_CHECK(sizes.vector_bytes > 0 && sizes.segment_bytes > 0);
  for (const PeerId target : targets) targets_[target] = {0, kFirstUnderWay, now};
  began_ = now;
  until_ = now + kLasts;
  left_ = kMostVectors * sizes.vector_bytes;
  filling_ = Blob(std::vector<std::byte>(sizes.segment_bytes));
}

bool Probe::holds_back(Instant now, PeerId to) const {
  const auto found = targets_.find(to);
  if (is_over(now) || found == targets_.end()) return false;
  return found->second.under_way >= found->second.at_most && now < found->second.nudge_at;
}

std::vector<PeerId> Probe::to_be_nudged(Instant now) const {
  std::vector<PeerId> peers;
  for (const auto& [peer, target] : targets_)
    if (now >= target.nudge_at) peers.push_back(peer);
  return peers;
}

std::optional<wire::Message> Probe::next_bulk(Instant now, PeerId to) {
  if (is_over(now) || !targets_.contains(to) || holds_back(now, to)) return std::nullopt;
  left_ -= std::min<std::uint64_t>(left_, filling_.size());
  Target& target = targets_.at(to);
  target.under_way += filling_.size();
  target.nudge_at = now + kNudge;
  return wire::Padding{filling_};
}

void Probe::on_bandwidth_report(PeerId from, const wire::BandwidthReport& bandwidth_report,
                                Duration round_trip) {
  const auto found = targets_.find(from);
  if (found == targets_.end() || bandwidth_report.over_ns == 0) return;
  Target& target = found->second;
  target.under_way -= std::min(target.under_way, bandwidth_report.bytes);
  const double bytes_per_s =
      static_cast<double>(bandwidth_report.bytes) * 1e9 / static_cast<double>(bandwidth_report.over_ns);
  const double in_time = std::min(bytes_per_s, wire::kMostBytesPerS) * to_seconds(round_trip + kToldEvery);
  target.at_most = std::max(target.at_most, kFirstUnderWay + static_cast<std::uint64_t>(kMore * in_time));
  until_ = std::max(until_, began_ + kLasts + kRoundTrips * std::min(round_trip, kLasts));
}

}  // namespace tw::average
