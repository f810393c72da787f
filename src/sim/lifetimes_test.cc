// SPDX-License-Identifier: Apache-2.0
#include "sim/lifetimes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace tw {
namespace {

using namespace std::chrono_literals;

double share_gone(const LifetimeLaw& law, double hours) {
  Prng random(7);
  int gone = 0;
  for (int i = 0; i < 20'000; ++i) gone += to_seconds(law.draw(random)) < 3600 * hours ? 1 : 0;
  return gone / 20'000.0;
}

TEST(Lifetimes, drawn_ones_have_the_shares_of_the_table) {
  for (const LifetimeLaw& law : measured_lifetimes()) {
    ASSERT_EQ(law.gone_by_h.size(), 24U) << law.name;
    EXPECT_TRUE(std::is_sorted(law.gone_by_h.begin(), law.gone_by_h.end())) << law.name;
    for (const double h : {1.0, 2.0, 3.0, 7.0, 12.0, 16.0, 23.0}) {
      EXPECT_NEAR(share_gone(law, h), law.gone_by(h), 0.015) << law.name << " " << h << " h";
    }
    EXPECT_EQ(law.gone_by(24), 1) << law.name;
  }
}

TEST(Lifetimes, the_tables_say_what_was_measured) {
  // Of the 30 V100 in us-central1 20 were gone within the first hour and none later (CM-DARE).
  const Result<LifetimeLaw> v100 = lifetimes_named("gcp-v100-us-central1");
  EXPECT_DOUBLE_EQ(v100.value().gone_by(1), 20.0 / 30);
  EXPECT_DOUBLE_EQ(v100.value().gone_by(23), 20.0 / 30);
  // 44 of 128 K80 were revoked within 24 h, 10 of them in the first hour (ICAC 2019).
  const Result<LifetimeLaw> k80 = lifetimes_named("gcp-k80");
  EXPECT_DOUBLE_EQ(k80.value().gone_by_h.front(), 10.0 / 128);
  EXPECT_DOUBLE_EQ(k80.value().gone_by_h.back(), 44.0 / 128);
}

TEST(Lifetimes, nothing_lives_longer_than_the_cap) {
  Prng random(3);
  const LifetimeLaw law = lifetimes_named("gcp-k80").value();
  Duration longest{};
  for (int i = 0; i < 1000; ++i) longest = std::max(longest, law.draw(random));
  EXPECT_EQ(longest, 24h);
}

TEST(Lifetimes, measured_ones_are_front_loaded_and_the_exponential_is_not) {
  const LifetimeLaw v100 = lifetimes_named("gcp-v100-us-west1").value();
  // An exponential with the same share gone by 24 h would lose far fewer in its first two hours.
  const double rate = -std::log(1 - v100.gone_by_h.back()) / 24;
  const LifetimeLaw flat = lifetimes_named("exponential:" + std::to_string(1 / rate)).value();
  EXPECT_GT(share_gone(v100, 2), 0.45);
  EXPECT_LT(share_gone(flat, 2), 0.15);
  EXPECT_NEAR(share_gone(flat, 5), flat.gone_by(5), 0.015);
}

TEST(Lifetimes, an_unknown_name_is_answered_with_those_there_are) {
  for (const char* name : {"v100", "exponential:", "exponential:-1", "exponential:1h"}) {
    const Result<LifetimeLaw> law = lifetimes_named(name);
    ASSERT_FALSE(law.ok()) << name;
    EXPECT_TRUE(law.error().message.starts_with(std::string("lifetimes ") + name)) << law.error().message;
    EXPECT_NE(law.error().message.find("gcp-v100-us-west1"), std::string::npos);
  }
}

TEST(Lifetimes, start_times_lie_within_what_was_measured) {
  Prng random(5);
  for (const StartTimes& times : measured_start_times()) {
    ASSERT_EQ(times.quantiles_s.size(), 5U);
    int below_median = 0;
    for (int i = 0; i < 2000; ++i) {
      const double s = to_seconds(times.draw(random));
      EXPECT_GE(s, times.quantiles_s.front());
      EXPECT_LE(s, times.quantiles_s.back());
      below_median += s < times.quantiles_s[2] ? 1 : 0;
    }
    EXPECT_NEAR(below_median, 1000, 80) << times.name;
  }
  EXPECT_EQ(start_times_for("gcp-v100-us-west1").name, "replace-v100");
  EXPECT_EQ(start_times_for("exponential:3").name, "replace-k80");
}

Generator of_sixteen() {
  Generator generator;
  generator.lifetimes = lifetimes_named("exponential:1000000").value();
  generator.replacement = start_times_for("gcp-v100");
  generator.length = 100h;
  return generator;
}

TEST(Generator, a_machine_follows_the_other_after_the_replacement_time) {
  Generator generator = of_sixteen();
  generator.lifetimes = lifetimes_named("gcp-v100").value();
  std::map<int, Duration> gone;
  int followed = 0;
  for (const Stay& stay : generate_stays(generator, 1)) {
    const auto before = gone.find(stay.slot);
    if (before == gone.end()) {
      EXPECT_EQ(stay.comes, 0s);
    } else {
      ++followed;
      EXPECT_GE(to_seconds(stay.comes - before->second), generator.replacement.quantiles_s.front());
      EXPECT_LE(to_seconds(stay.comes - before->second), generator.replacement.quantiles_s.back());
    }
    gone[stay.slot] = stay.goes;
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
  for (const Stay& stay : generate_stays(generator, 1)) {
    if (stay.taken) gone[stay.goes].insert(stay.slot);
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
  generator.lifetimes = lifetimes_named("gcp-k80").value();
  EXPECT_EQ(generate_stays(generator, 4), generate_stays(generator, 4));
  EXPECT_NE(generate_stays(generator, 4), generate_stays(generator, 5));
}

}  // namespace
}  // namespace tw
