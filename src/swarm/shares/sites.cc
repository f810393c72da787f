// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/sites.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "swarm/shares/bound.h"
#include "swarm/shares/shares.h"

namespace tw::swarm {
namespace {

using wire::Plan;
using wire::Share;
using wire::SitePlan;

/// Measured bandwidths are lower where there was less traffic: a smaller difference than this counts as
/// equal.
constexpr double kWorthUnequalRoots = 1.25;

using Participants = std::map<PeerId, Participant>;

Participants by_peer(const std::vector<Participant>& participants) {
  Participants all;
  for (const Participant& participant : participants) all[participant.peer] = participant;
  return all;
}

std::vector<SitePlan> by_name(const std::vector<Participant>& participants) {
  std::map<std::string, SitePlan> named;
  std::vector<SitePlan> single;
  for (const Participant& participant : participants) {
    SitePlan& site = participant.site.empty() ? single.emplace_back() : named[participant.site];
    site.members.push_back(participant.peer);
  }
  std::vector<SitePlan> sites;
  for (auto& [name, site] : named) sites.push_back(std::move(site));
  sites.insert(sites.end(), single.begin(), single.end());
  return sites;
}

bool is_member(const SitePlan& site, PeerId peer) {
  return std::ranges::find(site.members, peer) != site.members.end();
}

bool owns(const SitePlan& site, PeerId peer) {
  return std::ranges::any_of(site.shares, [&](const Share& share) { return share.owner == peer; });
}

PeerId owner_at(const std::vector<Share>& shares, std::uint64_t segment) {
  const auto next = std::ranges::upper_bound(shares, segment, {}, &Share::first);
  return std::prev(next)->owner;
}

std::uint64_t end_at(const std::vector<Share>& shares, std::uint64_t segment) {
  const auto next = std::ranges::upper_bound(shares, segment, {}, &Share::first);
  return std::prev(next)->first + std::prev(next)->count;
}

/// Calls for each range of segments in which no site changes its owner.
void each_cell(const std::vector<SitePlan>& sites, std::uint64_t segments, auto&& call) {
  for (std::uint64_t first = 0; first < segments;) {
    std::uint64_t end = segments;
    for (const SitePlan& site : sites) {
      if (!site.shares.empty()) end = std::min(end, end_at(site.shares, first));
    }
    call(first, end);
    first = end;
  }
}

/// The sum of the owners' bandwidths at each site, since sites exchange as single peers do. Nothing if a site
/// has no owners, or a pair is known to be slow: then the sum alone is not decisive.
std::vector<Participant> as_hands(const std::vector<SitePlan>& sites, const Participants& participants) {
  std::vector<Participant> all(sites.size());
  for (std::size_t k = 0; k < sites.size(); ++k) {
    all[k].peer = PeerId{k};
    for (const PeerId peer : sites[k].members) {
      const wire::Bandwidth& line = participants.at(peer).bandwidth;
      if (!line.slow.empty()) return {};
      if (!owns(sites[k], peer)) continue;
      all[k].bandwidth.up_bytes_per_s += line.up_bytes_per_s;
      all[k].bandwidth.down_bytes_per_s += line.down_bytes_per_s;
    }
    if (sites[k].shares.empty()) return {};
  }
  return all;
}

/// Parts of the roots: in proportion to a site's owners or, where that is much better, to its bandwidth.
std::vector<double> parts_of_roots(const std::vector<SitePlan>& sites, const Participants& participants) {
  std::vector<double> parts;
  for (const SitePlan& site : sites)
    parts.push_back(static_cast<double>(
        std::ranges::count_if(site.members, [&](PeerId peer) { return owns(site, peer); })));
  const double owners = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& part : parts) part /= owners;
  const std::vector<Participant> all = as_hands(sites, participants);
  if (all.empty()) return parts;
  const Split best = best_split(all);
  const bool pays = seconds_per_byte(parts, all) >= kWorthUnequalRoots * best.seconds_per_byte;
  return pays && !best.parts.empty() ? best.parts : parts;
}

/// Each segment's root is the owner of one of the sites, which take turns.
std::vector<Share> roots_of(const std::vector<SitePlan>& sites, std::uint64_t segments,
                            const Participants& participants) {
  const std::vector<double> part = parts_of_roots(sites, participants);
  std::vector<double> due(sites.size());
  std::vector<Share> roots;
  each_cell(sites, segments, [&](std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> count(sites.size());
    for (std::uint64_t s = first; s < end; ++s) {
      for (std::size_t k = 0; k < sites.size(); ++k) due[k] += part[k];
      const auto next = static_cast<std::size_t>(std::ranges::max_element(due) - due.begin());
      due[next] -= 1;
      ++count[next];
    }
    for (std::size_t k = 0; k < sites.size(); ++k) {
      if (count[k] == 0) continue;
      roots.push_back({owner_at(sites[k].shares, first), first, count[k], false});
      first += count[k];
    }
  });
  return roots;
}

/// Roots that own no more are replaced by the present owner in their site, or in another site in turn.
std::vector<Share> successors_of(const Plan& before, const std::vector<SitePlan>& sites) {
  std::vector<Share> roots;
  std::size_t turn = 0;
  for (const Share& share : before.shares) {
    const auto was_at = std::ranges::find_if(
        before.sites, [&](const SitePlan& site) { return is_member(site, share.owner); });
    const auto place = static_cast<std::size_t>(was_at - before.sites.begin());
    const bool stays = place < sites.size() && owns(sites[place], share.owner);
    std::size_t successor = place;
    while (successor >= sites.size() || sites[successor].shares.empty()) successor = turn++ % sites.size();
    for (std::uint64_t s = share.first; s < share.first + share.count; ++s) {
      append(roots, {stays ? share.owner : owner_at(sites[successor].shares, s), s, 1, false});
    }
  }
  return roots;
}

/// The site of each participant; the refuge for those of unknown sites and of sites without owners.
std::vector<std::vector<Participant>> crews_of(const Plan& plan, const Participants& participants) {
  std::map<std::string, std::size_t> names;
  std::vector<std::size_t> owners;
  for (std::size_t k = 0; k < plan.sites.size(); ++k) {
    owners.push_back(0);
    for (const PeerId peer : plan.sites[k].members) {
      const Participant& participant = participants.at(peer);
      owners.back() += participant.owns ? 1 : 0;
      if (!participant.site.empty()) names.try_emplace(participant.site, k);
    }
  }
  const auto refuge = static_cast<std::size_t>(std::ranges::max_element(owners) - owners.begin());
  std::vector<std::vector<Participant>> crews(plan.sites.size());
  for (const PeerId peer : plan.participants) {
    const auto at = std::ranges::find_if(plan.sites, [&](const SitePlan& s) { return is_member(s, peer); });
    const auto named = names.find(participants.at(peer).site);
    std::size_t place = named == names.end() ? refuge : named->second;
    if (at != plan.sites.end()) place = static_cast<std::size_t>(at - plan.sites.begin());
    crews[owners[place] == 0 ? refuge : place].push_back(participants.at(peer));
  }
  return crews;
}

/// Segments that changed owner are sealed.
std::vector<Share> sealed_successors(const std::vector<Share>& before, const std::vector<Share>& after) {
  std::vector<Share> shares;
  for (const Share& now : after) {
    for (std::uint64_t s = now.first; s < now.first + now.count; ++s) {
      append(shares, {now.owner, s, 1, now.sealed || (!before.empty() && owner_at(before, s) != now.owner)});
    }
  }
  return shares;
}

/// A peer that reduces the part x of a site of m peers sends 1 + x (m - 2 + w) vectors and gets as many; w is
/// what crosses between sites for a whole part. Its time at the rate b = min(up, down) is that over b. In the
/// least time for all, T = max(1 / b_min, (2 m - 2 + w) / sum b), the part of each is in proportion to T b -
/// 1.
std::vector<Share> shares_in_site(std::uint64_t segments, std::vector<Participant> crew, double crossing) {
  std::vector<double> rates;
  for (const Participant& participant : crew)
    rates.push_back(std::min(participant.bandwidth.up_bytes_per_s, participant.bandwidth.down_bytes_per_s));
  const double least = *std::ranges::min_element(rates);
  const bool alike = least <= 0 || least == *std::ranges::max_element(rates);
  const auto equal = [&] {
    for (Participant& participant : crew) participant.bandwidth = {};
    return weighted_shares(segments, crew);
  };
  if (alike || std::ranges::any_of(crew, [](const Participant& participant) { return !participant.owns; }))
    return equal();
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  const auto members = static_cast<double>(crew.size());
  const double seconds = std::max(1 / least, (2 * members - 2 + crossing) / all);
  const double seconds_if_equal = (2 * members - 2 + crossing) / members / least;
  if (seconds_if_equal < kWorthUnequalRoots * seconds) return equal();
  std::vector<double> parts;
  for (const double rate : rates) parts.push_back((seconds * rate - 1) / (seconds * all - members));
  return shares_of(segments, crew, parts);
}

/// Members become participants, each participant is in a site, and each site with members has owners.
void settle(Plan& plan, std::uint64_t segments, const Participants& participants) {
  std::vector<std::vector<Participant>> crews = crews_of(plan, participants);
  const auto sites = static_cast<double>(plan.sites.size());
  for (std::size_t k = 0; k < plan.sites.size(); ++k) {
    SitePlan& site = plan.sites[k];
    site.members.clear();
    const bool somebody = std::ranges::any_of(crews[k], &Participant::owns);
    for (Participant& participant : crews[k]) {
      site.members.push_back(participant.peer);
      participant.owns = participant.owns || !somebody;
    }
    if (crews[k].empty()) {
      site.shares.clear();
    } else {
      const double as_root = static_cast<double>(crews[k].size()) / static_cast<double>(participants.size());
      const double crossing = 1 + as_root * (sites - 2);
      site.shares =
          site.shares.empty() ? shares_in_site(segments, crews[k], crossing) : reown(site.shares, crews[k]);
    }
  }
}

void group_contributions(Plan& plan) {
  for (wire::Contribution& c : plan.draft.contributors) {
    const auto at = std::ranges::find_if(plan.sites, [&](const SitePlan& s) { return is_member(s, c.peer); });
    const auto some = std::ranges::find_if(plan.sites, [](const SitePlan& s) { return !s.members.empty(); });
    c.group = static_cast<std::uint32_t>((at == plan.sites.end() ? some : at) - plan.sites.begin());
  }
}

void drop_who_is_gone(Plan& plan, const Participants& participants) {
  for (SitePlan& site : plan.sites) {
    std::erase_if(site.members, [&](PeerId peer) { return !participants.contains(peer); });
  }
}

std::uint64_t segments_of(const Plan& plan) { return plan.shares.back().first + plan.shares.back().count; }

}  // namespace

void divide_into_sites(Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants) {
  TW_CHECK(segments > 0 && std::ranges::any_of(participants, &Participant::owns));
  std::vector<Participant> known = participants;
  (void)fill_in_lines(known);
  plan.sites = by_name(known);
  const Participants all = by_peer(known);
  settle(plan, segments, all);
  plan.shares = roots_of(plan.sites, segments, all);
  group_contributions(plan);
}

void divide_as_before(Plan& plan, const Plan& before, const std::vector<Participant>& participants) {
  TW_CHECK(plan.draft.round == before.draft.round && !before.shares.empty());
  plan.sites = before.sites;
  const Participants all = by_peer(participants);
  drop_who_is_gone(plan, all);
  for (SitePlan& site : plan.sites) {
    for (Share& share : site.shares) share.sealed = false;
  }
  settle(plan, segments_of(before), all);
  plan.shares = successors_of(before, plan.sites);
  group_contributions(plan);
}

void mend_sites(Plan& plan, std::uint64_t segments, const std::vector<Participant>& participants) {
  const bool sound =
      covers(plan.shares, segments) && std::ranges::all_of(plan.sites, [&](const SitePlan& site) {
        return site.shares.empty() || covers(site.shares, segments);
      });
  if (plan.sites.empty() || plan.participants.empty() || !sound) return;
  Participants all = by_peer(participants);
  drop_who_is_gone(plan, all);
  for (const SitePlan& site : plan.sites) {
    const auto owns_still = [&](PeerId peer) { return owns(site, peer); };
    const bool any = std::ranges::any_of(site.members, owns_still);
    for (const PeerId peer : site.members) all.at(peer).owns = !any || owns_still(peer);
  }
  const std::vector<SitePlan> before = plan.sites;
  settle(plan, segments, all);
  for (std::size_t k = 0; k < before.size(); ++k) {
    plan.sites[k].shares = sealed_successors(before[k].shares, plan.sites[k].shares);
  }
}

}  // namespace tw::swarm
