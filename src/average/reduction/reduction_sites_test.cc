// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "average/reduction/test_cluster.h"
#include "swarm/shares/division.h"
#include "swarm/shares/shares.h"
#include "swarm/shares/sites.h"

namespace tw::average {
namespace {

using Slots = std::vector<Cluster::Slot>;

Cluster::Setup random_tree_setup(std::uint64_t seed, std::uint64_t peers) {
  Prng prng(mix(seed, 23));
  Cluster::Setup setup{.seed = seed, .peers = peers};
  setup.codec = codec::kCodecs[prng.below(codec::kCodecs.size())];
  setup.geometry.length = 1 + prng.below(4000);
  setup.geometry.segment_length = 1 + setup.geometry.length / (1 + prng.below(40));
  return setup;
}

/// Any sites, owners, roots and groups that a plan may have, beyond what a leader would make.
void plant_any_tree(wire::Plan& plan, std::uint64_t segments, Prng& prng) {
  plan.sites.assign(1 + prng.below(4), {});
  for (const PeerId peer : plan.participants) {
    plan.sites[prng.below(plan.sites.size())].members.push_back(peer);
  }
  std::vector<std::uint32_t> peopled;
  for (std::uint32_t k = 0; k < plan.sites.size(); ++k) {
    wire::SitePlan& site = plan.sites[k];
    if (site.members.empty()) continue;
    peopled.push_back(k);
    std::vector<PeerId> owners;
    for (const PeerId peer : site.members) {
      if (owners.empty() || prng.chance(0.7)) owners.push_back(peer);
    }
    site.shares = swarm::equal_shares(segments, owners);
  }
  plan.shares.clear();
  for (std::uint64_t s = 0; s < segments; ++s) {
    swarm::append(plan.shares, {plan.participants[prng.below(plan.participants.size())], s, 1, false});
  }
  for (wire::Contribution& c : plan.draft.contributors) {
    for (const std::uint32_t k : peopled) {
      const std::vector<PeerId>& members = plan.sites[k].members;
      if (std::ranges::find(members, c.peer) != members.end()) c.group = k;
    }
    if (prng.chance(0.1)) c.group = peopled[prng.below(peopled.size())];
  }
}

/// Peers 1..n, peer i at site number i mod sites, named by letters; all contribute and own.
struct World {
  World(std::uint64_t seed, std::uint64_t peers, std::uint64_t sites)
      : setup(random_tree_setup(seed, peers)), cluster(setup), site_count(sites) {
    for (const PeerId id : cluster.alive()) {
      slots.emplace_back(id, 0);
      cluster.give(slots.back());
    }
    plan = cluster.plan(1, slots, {});
    swarm::divide_into_sites(plan, segments(), participants());
  }

  std::uint64_t segments() const { return setup.geometry.segments(); }

  std::string site(PeerId peer) const {
    return std::string(1, static_cast<char>('a' + peer.value % site_count));
  }

  std::vector<swarm::Participant> participants() const {
    std::vector<swarm::Participant> all;
    for (const PeerId peer : cluster.alive()) all.push_back({.peer = peer, .site = site(peer)});
    return all;
  }

  void call_and_run_some() {
    cluster.call(plan);
    cluster.run(cluster.prng().below(4 * setup.peers * segments() + 10));
  }

  /// Calls the next plan of the round.
  void call_again() {
    const wire::Plan before = plan;
    plan = cluster.plan(before.version + 1, slots, {});
    swarm::divide_as_before(plan, before, participants());
    cluster.call(plan);
  }

  void lose(std::uint64_t id) {
    cluster.die(id);
    std::erase_if(slots, [&](const Cluster::Slot& slot) { return slot.first == PeerId{id}; });
  }

  std::uint64_t bytes_between_sites() const {
    std::uint64_t bytes = 0;
    const auto count = [&](codec::Codec codec, const auto& sent, auto&& segment_of) {
      for (const auto& [key, times] : sent) {
        if (site(std::get<0>(key)) == site(std::get<1>(key))) continue;
        bytes += times * encoded_bytes(codec, setup.geometry.size(segment_of(key)));
      }
    };
    const auto segment_of_mean = [](const Cluster::GatherKey& key) { return std::get<3>(key); };
    count(setup.codec, cluster.scatters, [](const Cluster::ScatterKey& key) { return std::get<3>(key); });
    count(codec_of_mean(setup.codec), cluster.gathers, segment_of_mean);
    count(codec_of_mean(setup.codec), cluster.site_sums, segment_of_mean);
    return bytes;
  }

  ::testing::AssertionResult sent_nothing_twice() const {
    const bool once =
        most(cluster.scatters) <= 1 && most(cluster.gathers) <= 1 && most(cluster.site_sums) <= 1;
    if (!once) return ::testing::AssertionFailure() << "sent twice, seed " << setup.seed;
    if (!cluster.refusals.empty()) return ::testing::AssertionFailure() << cluster.refusals.front();
    return ::testing::AssertionSuccess();
  }

  Cluster::Setup setup;
  Cluster cluster;
  std::uint64_t site_count;
  Slots slots;
  wire::Plan plan;
};

TEST(ReductionOverSites, gives_everybody_the_reference_mean_bit_for_bit_whatever_the_tree) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster::Setup setup = random_tree_setup(seed, 1 + seed % 7);
    Cluster cluster(setup);
    Slots slots;
    for (const PeerId id : cluster.alive()) {
      for (std::uint32_t slot = 0; slot < 2; ++slot) {
        if (slots.empty() || cluster.prng().chance(0.5)) slots.emplace_back(id, slot);
      }
    }
    for (const auto& slot : slots) cluster.give(slot);
    wire::Plan plan = cluster.plan(1, slots, {});
    plant_any_tree(plan, setup.geometry.segments(), cluster.prng());
    cluster.call(plan);
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(plan));
    ASSERT_EQ(cluster.refusals.size(), 0U) << cluster.refusals.front() << ", seed " << seed;
    ASSERT_LE(most(cluster.scatters), 1);
    ASSERT_LE(most(cluster.site_sums), 1);
    ASSERT_LE(most(cluster.gathers), 1);
  }
}

TEST(ReductionOverSites, sends_the_vector_twice_between_sites_for_each_site_but_one) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed, 2 + seed % 11, 2 + seed % 3);
    world.cluster.call(world.plan);
    world.cluster.run();
    ASSERT_TRUE(world.cluster.all_have_the_mean_of(world.plan));
    ASSERT_TRUE(world.sent_nothing_twice());
    const std::uint64_t sites = std::min(world.site_count, world.setup.peers);
    const std::uint64_t vector = encoded_bytes(codec_of_mean(world.setup.codec), world.setup.geometry);
    ASSERT_EQ(world.bytes_between_sites(), 2 * vector * (sites - 1)) << "seed " << seed;
  }
}

TEST(ReductionOverSites, adds_again_only_at_the_site_of_a_contributor_that_died) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed, 6, 2);
    world.slots.emplace_back(PeerId{5}, 1);  // no other peer has to take over the shares of peer 5
    world.cluster.give(world.slots.back());
    world.plan = world.cluster.plan(1, world.slots, {});
    swarm::divide_into_sites(world.plan, world.segments(), world.participants());
    world.call_and_run_some();
    world.slots.pop_back();  // one contribution of peer 5 is lost, not the peer
    world.call_again();
    world.cluster.run();
    ASSERT_TRUE(world.cluster.all_have_the_mean_of(world.plan));
    ASSERT_TRUE(world.sent_nothing_twice());
    std::map<std::tuple<PeerId, PeerId, std::uint64_t>, int> of_the_other_site;
    for (const auto& [key, times] : world.cluster.site_sums) {
      const auto& [from, to, set, segment] = key;
      if (from.value % 2 == 0) of_the_other_site[{from, to, segment}] += times;
    }
    ASSERT_LE(most(of_the_other_site), 1) << "its mean is as it was, seed " << seed;
  }
}

TEST(ReductionOverSites, survives_the_death_of_a_peer_that_contributes_owns_and_is_a_root) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    World world(seed, 4 + seed % 4, 2 + seed % 2);
    world.call_and_run_some();
    world.lose(1 + seed % world.setup.peers);
    world.call_again();
    world.cluster.run();
    ASSERT_TRUE(world.cluster.all_have_the_mean_of(world.plan));
    ASSERT_TRUE(world.sent_nothing_twice());
  }
}

TEST(ReductionOverSites, goes_on_without_a_site_whose_peers_all_died) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    World world(seed, 6, 2 + seed % 2);
    world.call_and_run_some();
    const std::string lost = world.site(PeerId{1 + seed % 6});
    for (const PeerId id : world.cluster.alive()) {
      if (world.site(id) == lost) world.lose(id.value);
    }
    world.call_again();
    world.cluster.run();
    ASSERT_TRUE(world.cluster.all_have_the_mean_of(world.plan));
    ASSERT_TRUE(world.sent_nothing_twice());
  }
}

TEST(ReductionOverSites, lets_another_peer_take_the_place_of_one_that_voted_with_the_others) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed, 6, 2);
    world.cluster.call(world.plan);
    while (!world.cluster.at(1).complete()) ASSERT_TRUE(world.cluster.step());
    const PeerId dead{2 + seed % 5};
    world.cluster.die(dead.value);
    wire::Plan sealed = world.plan;
    sealed.version = 2;
    for (wire::Share& share : sealed.shares) {
      share.sealed = share.owner == dead;
      if (share.sealed) share.owner = PeerId{1};
    }
    sealed.participants = world.cluster.alive();
    swarm::mend_sites(sealed, world.segments(), world.participants());
    world.cluster.call(sealed);
    world.cluster.run();
    ASSERT_TRUE(world.cluster.all_have_the_mean_of(sealed));
  }
}

// Each peer misses some of the plans; sites, contributors, owners and roots change, and sets return.
TEST(ReductionOverSites, ends_at_the_last_plan_whatever_plans_came_before) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster::Setup setup = random_tree_setup(seed, 2 + seed % 5);
    Cluster cluster(setup);
    Prng& prng = cluster.prng();
    Slots all;
    for (const PeerId id : cluster.alive()) {
      for (std::uint32_t slot = 0; slot <= id.value % 2; ++slot) all.emplace_back(id, slot);
    }
    for (const auto& slot : all) cluster.give(slot);
    const int plans = static_cast<int>(2 + prng.below(6));
    wire::Plan plan;
    for (int version = 1; version <= plans; ++version) {
      const wire::Plan before = plan;
      Slots slots;
      for (const auto& slot : all) {
        if (slots.empty() || prng.chance(0.7)) slots.push_back(slot);
      }
      plan = cluster.plan(static_cast<std::uint32_t>(version), prng.chance(0.4) ? all : slots,
                          swarm::equal_shares(setup.geometry.segments(), cluster.alive()));
      const bool as_before =
          version > 1 && plan.draft.contributors.size() == before.draft.contributors.size();
      if (as_before && prng.chance(0.5)) {
        plan.sites = before.sites;
        plan.draft = before.draft;
      } else if (prng.chance(0.8)) {
        plant_any_tree(plan, setup.geometry.segments(), prng);
      }
      std::vector<PeerId> told;
      for (const PeerId id : cluster.alive()) {
        if (version == plans || prng.chance(0.6)) told.push_back(id);
      }
      cluster.call(plan, told);
      cluster.run(prng.below(2 * setup.peers * setup.geometry.segments() + 10));
    }
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(plan));
    ASSERT_LE(most(cluster.scatters), 1) << "seed " << seed;
    for (const std::string& refusal : cluster.refusals) {
      ASSERT_NE(refusal.find("sent twice"), std::string::npos) << refusal << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tw::average
