// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/division.h"

#include <algorithm>
#include <utility>

#include "swarm/shares/shares.h"
#include "swarm/shares/sites.h"
#include "swarm/shares/traffic.h"
#include "wire/limits.h"

namespace tw::swarm {
namespace {

/// A tree that sends less between sites may seem this much slower: traffic between sites costs most. The
/// longer the path and the more hosts share a site's uplink, the less of its bandwidth is seen. Four sites of
/// two hosts, 100 to 270 ms apart: 2.6 s with the tree, 4.8 s when it seemed 1.3 times as slow.
constexpr double kWorthLess = 2;
constexpr double kFaster = 0.95;

bool is_apart(const Participant& a, const Participant& b) { return a.site.empty() || a.site != b.site; }

bool has_two_sites(const std::vector<Participant>& participants) {
  return std::ranges::any_of(participants, [&](const Participant& participant) {
    return participant.peer != participants.front().peer && is_apart(participant, participants.front());
  });
}

double length_of(const WireBytes& bytes) {
  return static_cast<double>(bytes.contribution) / static_cast<double>(bytes.mean);
}

}  // namespace

bool is_better(const wire::Plan& tree, const wire::Plan& flat, const std::vector<Participant>& participants,
               double contribution) {
  const PlanTraffic with(tree, participants, contribution), without(flat, participants, contribution);
  const double seconds = with.seconds_per_byte(), flat_seconds = without.seconds_per_byte();
  if (seconds < kFaster * flat_seconds) return true;
  return with.between_sites() < kFaster * without.between_sites() && seconds <= kWorthLess * flat_seconds;
}

void divide(wire::Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants,
            const std::vector<wire::Share>& before, const DivisionOptions& options) {
  plan.shares = weighted_shares(segments, participants, before);
  if (options.sites == SiteUse::flat || !has_two_sites(participants)) return;
  wire::Plan tree = plan;
  divide_into_sites(tree, segments, participants);
  if (tree.sites.size() > wire::kMostSites) return;
  if (options.sites == SiteUse::tree || is_better(tree, plan, participants, length_of(options.bytes)))
    plan = std::move(tree);
}

/// Without a tree, contributions sent are about as many as means received.
double seconds_of(const wire::Plan& plan, const WireBytes& bytes,
                  const std::vector<Participant>& participants) {
  if (plan.sites.empty()) return seconds_of(plan.shares, (bytes.contribution + bytes.mean) / 2, participants);
  return static_cast<double>(bytes.mean) *
         PlanTraffic(plan, participants, length_of(bytes)).seconds_per_byte();
}

}  // namespace tw::swarm
