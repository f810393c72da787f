// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/machine_lifetimes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tw::sim {
namespace {

using namespace std::chrono_literals;

Generator of_sixteen() {
  Generator generator;
  generator.lifetimes = market::lifetimes_named("exponential:1000000").value();
  generator.replacement = market::start_times_for("gcp-v100");
  generator.length = 100h;
  return generator;
}

TEST(Generator, a_machine_follows_the_other_after_the_replacement_time) {
  Generator generator = of_sixteen();
  generator.lifetimes = market::lifetimes_named("gcp-v100").value();
  std::map<int, Duration> gone;
  int followed = 0;
  for (const MachineLifetime& lifetime : generate_lifetimes(generator, 1)) {
    const auto before = gone.find(lifetime.slot);
    if (before == gone.end()) {
      EXPECT_EQ(lifetime.comes, 0s);
    } else {
      ++followed;
      EXPECT_GE(to_seconds(lifetime.comes - before->second), generator.replacement.quantiles_s.front());
      EXPECT_LE(to_seconds(lifetime.comes - before->second), generator.replacement.quantiles_s.back());
    }
    gone[lifetime.slot] = lifetime.goes;
  }
  EXPECT_EQ(gone.size(), 16U);
  EXPECT_GT(followed, 50);
}

TEST(Generator, a_shock_takes_its_share_of_one_zone_at_one_moment) {
  Generator generator = of_sixteen();
  generator.peers = 400;
  generator.zones = 2;
  generator.shocks = {.per_day = 1, .share = 0.25};
  std::map<Duration, std::set<int>> gone;
  for (const MachineLifetime& lifetime : generate_lifetimes(generator, 1)) {
    if (lifetime.taken) gone[lifetime.goes].insert(lifetime.slot);
  }
  EXPECT_GT(gone.size(), 3U);
  EXPECT_LT(gone.size(), 20U);
  for (const auto& [when, slots] : gone) {
    EXPECT_NEAR(static_cast<double>(slots.size()), 50, 25) << to_seconds(when);
    for (const int slot : slots) EXPECT_EQ(slot % 2, *slots.begin() % 2);
  }
}

TEST(Generator, the_seed_decides) {
  Generator generator = of_sixteen();
  generator.lifetimes = market::lifetimes_named("gcp-k80").value();
  EXPECT_EQ(generate_lifetimes(generator, 4), generate_lifetimes(generator, 4));
  EXPECT_NE(generate_lifetimes(generator, 4), generate_lifetimes(generator, 5));
}

}  // namespace
}  // namespace tw::sim
