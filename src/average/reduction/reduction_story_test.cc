// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "average/reduction/test_cluster.h"
#include "swarm/shares/shares.h"

namespace tw::average {
namespace {

using wire::Plan;

Cluster::Setup random_setup(std::uint64_t seed, std::uint64_t peers) {
  Prng prng(mix(seed, 17));
  Cluster::Setup setup{.seed = seed, .peers = peers};
  setup.codec = codec::kCodecs[prng.below(codec::kCodecs.size())];
  setup.stochastic = setup.codec == codec::Codec::int8 && prng.chance(0.5);
  setup.geometry.length = 1 + prng.below(4000);
  setup.geometry.segment_length = 1 + setup.geometry.length / (1 + prng.below(40));
  return setup;
}

std::vector<PeerId> peers_without(const Cluster& cluster, std::uint64_t id) {
  std::vector<PeerId> peers = cluster.alive();
  std::erase(peers, PeerId{id});
  return peers;
}

TEST(Reduction, everybody_gets_the_reference_mean_bit_for_bit) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Cluster::Setup setup = random_setup(seed, 1 + seed % 5);
    Cluster cluster(setup);
    std::vector<Cluster::Slot> slots;
    std::vector<PeerId> owners;
    for (const PeerId id : cluster.alive()) {
      if (id.value == 1 || cluster.prng().chance(0.7)) slots.emplace_back(id, 0);
      if (id.value == 1 || cluster.prng().chance(0.7)) owners.push_back(id);
    }
    for (const auto& slot : slots) cluster.give(slot);
    const Plan plan = cluster.plan(1, slots, swarm::equal_shares(setup.geometry.segments(), owners));
    cluster.call(plan);
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(plan));
    ASSERT_EQ(cluster.refusals.size(), 0U) << cluster.refusals.front() << ", seed " << seed;
    ASSERT_LE(most(cluster.scatters), 1);
    ASSERT_LE(most(cluster.gathers), 1);
    ASSERT_TRUE(setup.peers > 1 || (cluster.scatters.empty() && cluster.gathers.empty()));
  }
}

TEST(Reduction, recomputes_sealed_segments_without_the_contributor_that_died_and_sends_only_those_again) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster::Setup setup = random_setup(seed, 4);
    Cluster cluster(setup);
    const std::vector<Cluster::Slot> slots = {{PeerId{1}, 0}, {PeerId{2}, 0}, {PeerId{3}, 0}, {PeerId{4}, 0}};
    for (const auto& slot : slots) cluster.give(slot);
    // Peer 4 owns nothing, so that its death moves no share.
    const auto shares = swarm::equal_shares(setup.geometry.segments(), peers_without(cluster, 4));
    const Plan before = cluster.plan(1, slots, shares);
    cluster.call(before);
    cluster.run(cluster.prng().below(8 * setup.geometry.segments() + 10));
    cluster.die(4);
    const Plan after = cluster.plan(2, {slots.begin(), slots.end() - 1}, shares);
    cluster.call(after);
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(after));
    ASSERT_EQ(cluster.refusals.size(), 0U) << cluster.refusals.front() << ", seed " << seed;
    ASSERT_LE(most(cluster.scatters), 1) << "no contribution is sent again, seed " << seed;
    ASSERT_LE(most(cluster.gathers), 1) << "each mean is sent once for a set, seed " << seed;
  }
}

TEST(Reduction, counts_a_contributor_that_died_after_all_its_segments_arrived) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Cluster::Setup setup = random_setup(seed, 3);
    Cluster cluster(setup);
    const std::vector<Cluster::Slot> slots = {{PeerId{1}, 0}, {PeerId{2}, 0}, {PeerId{3}, 0}};
    for (const auto& slot : slots) cluster.give(slot);
    const auto shares = swarm::equal_shares(setup.geometry.segments(), {PeerId{1}, PeerId{2}});
    const Plan before = cluster.plan(1, slots, shares);
    cluster.call(before);
    cluster.run();
    cluster.die(3);
    Plan after = cluster.plan(2, slots, shares);
    cluster.call(after);
    const auto gathers = cluster.gathers;
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(after));
    ASSERT_EQ(cluster.gathers, gathers) << "the set is the same: nothing is sent again, seed " << seed;
  }
}

TEST(Reduction, sends_the_share_of_an_owner_that_died_to_its_successors_and_nothing_else) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster::Setup setup = random_setup(seed, 4);
    Cluster cluster(setup);
    // Peer 4 owns a share but contributes nothing: the set stays when it dies.
    const std::vector<Cluster::Slot> slots = {{PeerId{1}, 0}, {PeerId{2}, 0}, {PeerId{3}, 0}};
    for (const auto& slot : slots) cluster.give(slot);
    const Plan before =
        cluster.plan(1, slots, swarm::equal_shares(setup.geometry.segments(), cluster.alive()));
    cluster.call(before);
    cluster.run(cluster.prng().below(8 * setup.geometry.segments() + 10));
    cluster.die(4);
    const Plan after = cluster.plan(2, slots, swarm::reown(before.shares, cluster.alive()));
    cluster.call(after);
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(after));
    ASSERT_EQ(cluster.refusals.size(), 0U) << cluster.refusals.front() << ", seed " << seed;
    ASSERT_LE(most(cluster.scatters), 1) << "seed " << seed;
    ASSERT_LE(most(cluster.gathers), 1) << "seed " << seed;
  }
}

TEST(Reduction, survives_the_death_of_a_peer_that_contributes_and_owns) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::uint64_t n = 2 + seed % 4;
    const Cluster::Setup setup = random_setup(seed, n);
    Cluster cluster(setup);
    std::vector<Cluster::Slot> slots;
    for (const PeerId id : cluster.alive()) slots.emplace_back(id, 0);
    for (const auto& slot : slots) cluster.give(slot);
    const Plan before =
        cluster.plan(1, slots, swarm::equal_shares(setup.geometry.segments(), cluster.alive()));
    cluster.call(before);
    cluster.run(cluster.prng().below(4 * n * setup.geometry.segments() + 10));
    cluster.die(n);
    slots.pop_back();
    const Plan after = cluster.plan(2, slots, swarm::reown(before.shares, cluster.alive()));
    cluster.call(after);
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(after));
    ASSERT_LE(most(cluster.scatters), 1) << "seed " << seed;
  }
}

TEST(Reduction, adds_the_slots_that_replace_a_lost_contribution) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster::Setup setup = random_setup(seed, 3);
    Cluster cluster(setup);
    std::vector<Cluster::Slot> slots = {{PeerId{1}, 0}, {PeerId{2}, 0}, {PeerId{3}, 0}};
    for (const auto& slot : slots) cluster.give(slot);
    const Plan before =
        cluster.plan(1, slots, swarm::equal_shares(setup.geometry.segments(), cluster.alive()));
    cluster.call(before);
    cluster.run(cluster.prng().below(12 * setup.geometry.segments() + 10));
    cluster.die(3);
    slots = {{PeerId{1}, 0}, {PeerId{2}, 0}, {PeerId{1}, 1}, {PeerId{2}, 3}};
    cluster.give(slots[2]);
    cluster.give(slots[3]);
    const Plan after = cluster.plan(2, slots, swarm::reown(before.shares, cluster.alive()));
    cluster.call(after);
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(after));
    ASSERT_EQ(cluster.refusals.size(), 0U) << cluster.refusals.front() << ", seed " << seed;
    ASSERT_LE(most(cluster.scatters), 1) << "seed " << seed;
  }
}

// Peer 1 had the whole mean and voted; the others had not finished, and half of the contributors are dead.
TEST(Reduction, a_voter_serves_the_mean_it_voted_for_without_any_contribution) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Cluster::Setup setup = random_setup(seed, 4);
    Cluster cluster(setup);
    const std::vector<Cluster::Slot> slots = {{PeerId{1}, 0}, {PeerId{2}, 0}, {PeerId{3}, 0}, {PeerId{4}, 0}};
    for (const auto& slot : slots) cluster.give(slot);
    const std::uint64_t segments = setup.geometry.segments();
    const Plan voted = cluster.plan(1, slots, swarm::equal_shares(segments, cluster.alive()));
    cluster.call(voted);
    while (!cluster.at(1).complete()) ASSERT_TRUE(cluster.step());
    cluster.die(3);
    cluster.die(4);
    const bool detour = seed % 2 == 0;
    if (detour) {
      const Plan other = cluster.plan(2, {slots[0], slots[1]}, swarm::reown(voted.shares, cluster.alive()));
      cluster.call(other);
      cluster.run(cluster.prng().below(6 * segments + 4));
    }
    Plan again = cluster.plan(3, slots, {{PeerId{1}, 0, segments, true}});
    again.ballot = 1;
    cluster.call(again);
    while (cluster.at(1).plan()->ballot == 0 || !cluster.at(2).plan() || cluster.at(2).plan()->ballot == 0) {
      ASSERT_TRUE(cluster.step());
    }
    const auto scatters = cluster.scatters;
    cluster.run();
    ASSERT_TRUE(cluster.all_have_the_mean_of(again));
    ASSERT_EQ(cluster.scatters, scatters) << "contributors send nothing for sealed shares, seed " << seed;
  }
}

// Each peer misses some of the plans; contributors, owners and order change from plan to plan, sets return.
TEST(Reduction, ends_at_the_last_plan_whatever_plans_came_before) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::uint64_t n = 2 + seed % 4;
    const Cluster::Setup setup = random_setup(seed, n);
    Cluster cluster(setup);
    std::vector<Cluster::Slot> all;
    for (const PeerId id : cluster.alive()) {
      for (std::uint32_t slot = 0; slot <= id.value % 2; ++slot) all.emplace_back(id, slot);
    }
    for (const auto& slot : all) cluster.give(slot);
    Prng& prng = cluster.prng();
    Plan plan = cluster.plan(1, all, swarm::equal_shares(setup.geometry.segments(), cluster.alive()));
    cluster.call(plan);
    const int plans = static_cast<int>(2 + prng.below(6));
    for (int version = 2; version <= plans; ++version) {
      cluster.run(prng.below(2 * n * setup.geometry.segments() + 10));
      std::vector<Cluster::Slot> slots;
      for (const auto& slot : all) {
        if (slots.empty() || prng.chance(0.7)) slots.push_back(slot);
      }
      if (prng.chance(0.3)) std::reverse(slots.begin(), slots.end());
      if (prng.chance(0.4)) slots = all;
      std::vector<PeerId> owners;
      for (const PeerId id : cluster.alive()) {
        if (owners.empty() || prng.chance(0.7)) owners.push_back(id);
      }
      const bool last = version == plans;
      plan = cluster.plan(static_cast<std::uint32_t>(version), slots,
                          prng.chance(0.5) ? swarm::reown(plan.shares, owners)
                                           : swarm::equal_shares(setup.geometry.segments(), owners));
      std::vector<PeerId> told;
      for (const PeerId id : cluster.alive()) {
        if (last || prng.chance(0.6)) told.push_back(id);
      }
      cluster.call(plan, told);
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
