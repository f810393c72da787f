// SPDX-License-Identifier: Apache-2.0
#include "market/site.h"

#include <gmock/gmock.h>

#include "market/test_site.h"

namespace tw::market {
namespace {

TEST(Site, names_of_one_place_are_equal) {
  EXPECT_EQ(at("gc:us"), at("gcp:us"));
  EXPECT_EQ(at("AWS:US-West-2:USW2-az1"), at("aws:us-west-2:usw2-az1"));
  EXPECT_NE(at("vast:Denmark, DK, EU"), at("vast:denmark, dk, eu"));
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

}  // namespace
}  // namespace tw::market
