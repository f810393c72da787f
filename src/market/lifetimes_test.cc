// SPDX-License-Identifier: Apache-2.0
#include "market/lifetimes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tw::market {
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
  // 20 of the 30 V100 in us-central1 were gone within the first hour and none later (CM-DARE).
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

TEST(Lifetimes, of_an_offer_are_those_of_its_gpu_and_region_where_they_were_measured) {
  Offer offer{.provider = "gcp", .region = "us-west1", .gpu = "V100", .purchase = Purchase::spot};
  EXPECT_EQ(lifetimes_for(offer).name, "gcp-v100-us-west1");
  offer.region = "us-east4";
  EXPECT_EQ(lifetimes_for(offer).name, "gcp-v100");
  offer.gpu = "T4";
  EXPECT_EQ(lifetimes_for(offer).name, "gcp-gpu");
  EXPECT_DOUBLE_EQ(lifetimes_for(offer).gone_by(1), (10.0 + 2 + 18) / (128 + 42 + 66));
  offer.provider = "aws";
  EXPECT_EQ(lifetimes_for(offer).name, "exponential");
  EXPECT_NEAR(lifetimes_for(offer).gone_by(30 * 24), 0.125, 1e-9);
  offer.purchase = Purchase::on_demand;
  EXPECT_EQ(lifetimes_for(offer).gone_by(1e6), 0);
}

TEST(Lifetimes, hazard_and_mean_follow_from_the_shares) {
  const LifetimeLaw flat = lifetimes_named("exponential:8").value();
  EXPECT_DOUBLE_EQ(flat.hazard_per_h(3), 1.0 / 8);
  EXPECT_DOUBLE_EQ(flat.expected_h(), 8);
  for (const LifetimeLaw& law : measured_lifetimes()) {
    double alive = 1;
    for (int h = 0; h < 24; ++h) alive *= std::exp(-law.hazard_per_h(h));
    EXPECT_NEAR(alive, 1 - law.gone_by_h.back(), 1e-12) << law.name;
    Prng random(5);
    double sum = 0;
    for (int i = 0; i < 20'000; ++i) sum += to_seconds(law.draw(random)) / 3600;
    EXPECT_NEAR(law.expected_h(), sum / 20'000, 0.3) << law.name;
  }
}

TEST(Learning, without_machines_of_ones_own_the_law_stays) {
  for (const char* name : {"gcp-v100", "exponential:7"}) {
    const LifetimeLaw prior = lifetimes_named(name).value();
    for (const double h : {0.5, 1.0, 5.0, 20.0})
      EXPECT_NEAR(learned(prior, {}).gone_by(h), prior.gone_by(h), 1e-12) << name;
  }
}

/// Machines of a law, all observed to their end.
std::vector<Lived> machines_of(const LifetimeLaw& law, int count) {
  Prng random(11);
  std::vector<Lived> seen;
  for (int i = 0; i < count; ++i) {
    const double h = to_seconds(law.draw(random)) / 3600;
    seen.push_back({h, law.cap_h == 0 || h < law.cap_h});
  }
  return seen;
}

TEST(Learning, many_machines_overrule_the_prior) {
  const LifetimeLaw prior = lifetimes_named("gcp-v100-us-central1").value();
  const LifetimeLaw truth = lifetimes_named("gcp-k80").value();
  const LifetimeLaw law = learned(prior, machines_of(truth, 20'000));
  for (const double h : {1.0, 2.0, 8.0, 16.0, 23.0})
    EXPECT_NEAR(law.gone_by(h), truth.gone_by(h), 0.015) << h;
  const LifetimeLaw flat = learned(lifetimes_named("exponential:100").value(),
                                   machines_of(lifetimes_named("exponential:6").value(), 20'000));
  EXPECT_NEAR(flat.mean_h, 6, 0.2);
}

TEST(Learning, few_machines_move_the_law_a_little) {
  const LifetimeLaw prior = lifetimes_named("exponential:10").value();
  EXPECT_DOUBLE_EQ(learned(prior, {{1, true}}).mean_h, 101.0 / 11);
  const LifetimeLaw v100 = lifetimes_named("gcp-v100").value();
  const double moved = learned(v100, {{0.5, true}}).gone_by(1);
  EXPECT_DOUBLE_EQ(moved, (10 * v100.gone_by(1) + 1) / 11);
  const double half_an_hour = learned(v100, {{0.5, false}}).gone_by(1);
  EXPECT_DOUBLE_EQ(half_an_hour, 10 * v100.gone_by(1) / 10.5);
}

TEST(Learning, machines_that_are_still_there_are_survivors_and_no_losses) {
  const LifetimeLaw prior = lifetimes_named("gcp-v100").value();
  const LifetimeLaw law = learned(prior, std::vector<Lived>(20, {12, false}));
  EXPECT_LT(law.gone_by(1), 0.5 * prior.gone_by(1));
  EXPECT_LT(law.hazard_per_h(0), prior.hazard_per_h(0));
  EXPECT_NEAR(law.hazard_per_h(23), prior.hazard_per_h(23), 1e-9);  // no machine was seen at this age
}

TEST(Learning, machines_older_than_the_cap_lift_it) {
  const LifetimeLaw law = learned(lifetimes_named("gcp-v100").value(), std::vector<Lived>(50, {200, false}));
  EXPECT_EQ(law.cap_h, 0);
  EXPECT_LT(law.gone_by(100), 0.5);
  EXPECT_GT(law.expected_h(), 200);
  Prng random(3);
  int old = 0;
  for (int i = 0; i < 10'000; ++i) old += law.draw(random) > 100h ? 1 : 0;
  EXPECT_NEAR(old / 10'000.0, 1 - law.gone_by(100), 0.02);
}

}  // namespace
}  // namespace tw::market
