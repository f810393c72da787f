// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/traffic.h"

#include <algorithm>

#include "swarm/shares/bound.h"

namespace tw::swarm {
namespace {

std::vector<wire::SitePlan> sites_of(const wire::Plan& plan) {
  return plan.sites.empty() ? std::vector<wire::SitePlan>{{plan.participants, plan.shares}} : plan.sites;
}

/// Calls for each pair of shares with common segments, with their number.
void each_overlap(const std::vector<wire::Share>& a, const std::vector<wire::Share>& b, auto&& call) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::uint64_t a_end = a[i].first + a[i].count, b_end = b[j].first + b[j].count;
    const std::uint64_t first = std::max(a[i].first, b[j].first), end = std::min(a_end, b_end);
    if (end > first) call(a[i].owner, b[j].owner, static_cast<double>(end - first));
    (a_end < b_end ? i : j) += 1;
  }
}

}  // namespace

PlanTraffic::PlanTraffic(const wire::Plan& plan, const std::vector<Participant>& participants,
                         double contribution)
    : participants_(participants), sent_(participants.size() * participants.size()) {
  for (std::size_t i = 0; i < participants.size(); ++i) places_[participants[i].peer] = i;
  if (plan.shares.empty()) return;
  const std::vector<wire::SitePlan> sites = sites_of(plan);
  const double segments = static_cast<double>(plan.shares.back().first + plan.shares.back().count);
  for (const wire::Contribution& c : plan.draft.contributors) {
    if (c.group >= sites.size()) continue;
    for (const wire::Share& share : sites[c.group].shares) {
      add(c.peer, share.owner, contribution * static_cast<double>(share.count) / segments);
    }
  }
  for (std::size_t k = 0; k < sites.size(); ++k) {
    const bool contributes = std::ranges::any_of(plan.draft.contributors,
                                                 [&](const wire::Contribution& c) { return c.group == k; });
    each_overlap(plan.shares, sites[k].shares, [&](PeerId root, PeerId owner, double count) {
      const double part = count / segments;
      if (contributes) add(owner, root, part);
      add(root, owner, part);
      for (const PeerId member : sites[k].members) {
        if (member != root) add(owner, member, part);
      }
    });
  }
}

void PlanTraffic::add(PeerId from, PeerId to, double vectors) {
  if (from == to) return;
  const auto sender = places_.find(from), receiver = places_.find(to);
  if (sender == places_.end() || receiver == places_.end()) return;
  sent_[sender->second * participants_.size() + receiver->second] += vectors;
}

double PlanTraffic::between_sites() const {
  double vectors = 0;
  for (std::size_t i = 0; i < participants_.size(); ++i) {
    for (std::size_t j = 0; j < participants_.size(); ++j) {
      const bool apart = participants_[i].site.empty() || participants_[i].site != participants_[j].site;
      if (apart) vectors += from_to(i, j);
    }
  }
  return vectors;
}

double PlanTraffic::seconds_per_byte() const {
  std::vector<Participant> participants = participants_;
  if (!fill_in_lines(participants)) return 0;
  double seconds = 0;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    double out = 0, in = 0;
    for (std::size_t j = 0; j < participants.size(); ++j) {
      out += from_to(i, j);
      in += from_to(j, i);
    }
    const wire::Bandwidth& line = participants[i].bandwidth;
    seconds = std::max({seconds, out / line.up_bytes_per_s, in / line.down_bytes_per_s});
    for (const wire::PairRate& slow : line.slow) {
      const auto to = places_.find(slow.to);
      if (to == places_.end() || slow.bytes_per_s <= 0) continue;
      seconds = std::max(seconds, from_to(i, to->second) / slow.bytes_per_s);
    }
  }
  return seconds;
}

}  // namespace tw::swarm
