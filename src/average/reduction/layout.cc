// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "swarm/shares/shares.h"
#include "wire/frame.h"
#include "wire/limits.h"

namespace tw::average {
namespace {

/// One field of the shares, by segment.
template <class T>
std::vector<T> by_segment(const std::vector<wire::Share>& shares, T wire::Share::*member) {
  std::vector<T> values;
  for (const wire::Share& share : shares) values.insert(values.end(), share.count, share.*member);
  return values;
}

/// 0 when the contributions cannot be weighted.
std::uint64_t total_samples(const std::vector<wire::Contribution>& contributors) {
  std::uint64_t total = 0;
  for (const wire::Contribution& c : contributors) {
    if (c.samples == 0 || c.samples > UINT64_MAX - total) return 0;
    total += c.samples;
  }
  return total;
}

float share_of(std::uint64_t samples, std::uint64_t total) {
  return static_cast<float>(static_cast<double>(samples) / static_cast<double>(total));
}

/// True if each participant is in exactly one site, and no other peer is in any.
bool has_everybody(const std::vector<wire::SitePlan>& sites, std::vector<PeerId> participants) {
  std::vector<PeerId> members;
  for (const wire::SitePlan& site : sites)
    members.insert(members.end(), site.members.begin(), site.members.end());
  std::ranges::sort(members);
  std::ranges::sort(participants);
  return members == participants;
}

bool all_within(const std::vector<wire::Share>& shares, const std::set<PeerId>& peers) {
  return std::ranges::all_of(shares, [&](const wire::Share& share) { return peers.contains(share.owner); });
}

}  // namespace

std::optional<Layout> Layout::of(const wire::Plan& plan, std::uint64_t segments, PeerId self) {
  Layout layout;
  layout.self_ = self;
  const std::set<PeerId> participants(plan.participants.begin(), plan.participants.end());
  const bool sound = participants.size() == plan.participants.size() && swarm::covers(plan.shares, segments);
  if (!sound || !all_within(plan.shares, participants)) return std::nullopt;
  layout.roots_ = by_segment(plan.shares, &wire::Share::owner);
  layout.closed_ = by_segment(plan.shares, &wire::Share::sealed);
  if (!layout.take_sites(plan, segments) || !layout.take_groups(plan)) return std::nullopt;
  return layout;
}

std::optional<Layout::Site> Layout::site_of(const wire::SitePlan& plan, std::uint64_t segments) {
  const std::set<PeerId> members(plan.members.begin(), plan.members.end());
  const bool sound = members.empty() ? plan.shares.empty() : swarm::covers(plan.shares, segments);
  if (!sound || !all_within(plan.shares, members)) return std::nullopt;
  return Site{plan.members, by_segment(plan.shares, &wire::Share::owner),
              by_segment(plan.shares, &wire::Share::sealed)};
}

bool Layout::take_sites(const wire::Plan& plan, std::uint64_t segments) {
  std::vector<wire::SitePlan> sites = plan.sites;
  if (sites.empty()) sites.push_back({plan.participants, plan.shares});
  if (sites.size() > wire::kMostSites || !has_everybody(sites, plan.participants)) return false;
  for (const wire::SitePlan& planned : sites) {
    std::optional<Site> site = site_of(planned, segments);
    if (!site) return false;
    const bool own = std::ranges::find(site->members, self_) != site->members.end();
    if (own) site_ = static_cast<std::uint32_t>(sites_.size());
    sites_.push_back(std::move(*site));
  }
  return true;
}

bool Layout::take_groups(const wire::Plan& plan) {
  const std::vector<wire::Contribution>& contributors = plan.draft.contributors;
  const std::uint64_t total = total_samples(contributors);
  if (total == 0) return false;
  std::map<std::uint32_t, std::vector<const wire::Contribution*>> members;
  std::set<std::pair<PeerId, std::uint32_t>> named;
  for (const wire::Contribution& c : contributors) {
    if (c.slot >= wire::kMostSlots || c.group >= sites_.size() || !named.emplace(c.peer, c.slot).second)
      return false;
    members[c.group].push_back(&c);
  }
  for (const auto& [number, contributions] : members) {
    std::uint64_t samples = 0;
    for (const wire::Contribution* c : contributions) samples += c->samples;
    Group group{number, contribution_set(plan.draft, number), samples, share_of(samples, total), {}};
    for (const wire::Contribution* c : contributions) {
      group.inputs.push_back({c->peer, c->slot, c->samples, share_of(c->samples, samples)});
    }
    groups_.push_back(std::move(group));
  }
  const auto own = std::ranges::find_if(groups_, [&](const Group& group) { return group.site == site_; });
  own_group_ = static_cast<std::size_t>(own - groups_.begin());
  return true;
}

const Layout::Input* Layout::input(PeerId peer, std::uint32_t slot) const {
  for (const Group& group : groups_) {
    for (const Input& input : group.inputs) {
      if (input.peer == peer && input.slot == slot) return &input;
    }
  }
  return nullptr;
}

bool Layout::is_addend(PeerId peer, std::uint32_t slot, std::uint64_t segment) const {
  return own_group() != nullptr && owns(segment) &&
         std::ranges::any_of(own_group()->inputs,
                             [&](const Input& input) { return input.peer == peer && input.slot == slot; });
}

std::vector<PeerId> Layout::receivers(std::uint64_t segment) const {
  std::vector<PeerId> peers;
  if (is_root(segment)) {
    for (const Site& site : sites_) {
      if (!site.owners.empty() && site.owners[segment] != self_) peers.push_back(site.owners[segment]);
    }
  }
  if (owns(segment)) {
    std::ranges::copy_if(sites_[*site_].members, std::back_inserter(peers),
                         [&](PeerId peer) { return peer != self_ && peer != roots_[segment]; });
  }
  return peers;
}

}  // namespace tw::average
