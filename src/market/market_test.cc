// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "market/network.h"
#include "market/offer.h"
#include "market/tariffs.h"

namespace tw {
namespace {

Site at(const std::string& text) { return parse_site(text).value(); }

TEST(Site, names_of_one_place_are_equal) {
  EXPECT_EQ(at("gc:us"), at("gcp:us"));
  EXPECT_EQ(to_string(at("gc:us-west1:us-west1-b")), "gcp:us-west1:us-west1-b");
  for (const char* text : {"", "gcp", "gcp:", ":us", "gcp:us:", "a:b:c:d"})
    EXPECT_FALSE(parse_site(text).ok()) << text;
}

TEST(Site, areas_follow_from_the_clouds_own_names) {
  const std::pair<const char*, Area> kCases[] = {
      {"gcp:us-central1", Area::us},
      {"gcp:northamerica-northeast1", Area::us},
      {"gcp:australia-southeast1", Area::aus},
      {"aws:ap-southeast-2", Area::aus},
      {"aws:ap-southeast-1", Area::asia},
      {"aws:ca-central-1", Area::us},
      {"azure:westeurope", Area::eu},
      {"azure:southcentralus", Area::us},
      {"azure:westus3", Area::us},
      {"azure:southeastasia", Area::asia},
      {"lambda:us-midwest-1", Area::us},
      {"vast:Denmark, DK, EU", Area::eu},
      {"gc:aus", Area::aus},
      {"onprem:eu", Area::eu},
      {"azure:southafricanorth", Area::africa},
      {"azure:brazilsouth", Area::south_america},
  };
  for (const auto& [text, area] : kCases) EXPECT_EQ(area_of(at(text)), area) << text;
  EXPECT_EQ(area_of(at("garage:shelf")), std::nullopt);
  EXPECT_TRUE(is_area(at("gc:us-west")));
  EXPECT_FALSE(is_area(at("gc:us-west1")));
  EXPECT_FALSE(is_area(at("aws:eu-west-1")));
}

TEST(Tariffs, areas_pay_what_the_paper_printed) {
  const Tariffs& tariffs = Tariffs::built_in();
  const std::tuple<const char*, const char*, double> kCases[] = {
      {"gc:us", "gc:us", 0.01},
      {"gc:us", "gc:eu", 0.08},
      {"gc:eu", "gc:aus", 0.15},
      {"gc:us-west", "aws:us-west", 0.01},
      {"azure:us-south", "gc:us-west", 0.02},
      {"azure:us-south", "azure:us-south", 0},
      {"gc:eu", "onprem:eu", 0.01},
      {"onprem:eu", "gc:eu", 0},
      {"lambda:us-west", "lambda:us-west", 0},
  };
  for (const auto& [from, to, usd] : kCases)
    EXPECT_EQ(tariffs.usd_per_gb(at(from), at(to)), usd) << from << " " << to;
}

TEST(Network, pairs_carry_what_was_measured) {
  const NetworkProfile& network = NetworkProfile::built_in();
  EXPECT_NEAR(network.rtt_s(at("gc:eu"), at("gc:us")), 0.103138, 1e-9);
  EXPECT_NEAR(network.bytes_per_s(at("gc:eu"), at("gc:us"), 1), 214.5e6 / 8, 1);
  EXPECT_NEAR(network.bytes_per_s(at("gc:eu"), at("gc:us"), 10), 2145e6 / 8, 1);
  EXPECT_NEAR(network.bytes_per_s(at("gc:eu"), at("gc:us"), 80), 6198e6 / 8, 1);
  EXPECT_EQ(network.path(at("gc:eu"), at("onprem-dgx2:eu")), network.path(at("onprem-dgx2:eu"), at("gc:eu")));
  EXPECT_EQ(network.path(at("gcp:europe-west4"), at("gcp:us-central1")),
            network.path(at("gc:eu"), at("gc:us")));
  EXPECT_FALSE(network.path(at("aws:us-east-1"), at("aws:eu-west-1")).measured);
}

}  // namespace
}  // namespace tw
