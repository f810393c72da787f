// SPDX-License-Identifier: Apache-2.0
#include "market/region_name.h"

#include <gtest/gtest.h>

#include "market/test_site.h"

namespace tw::market {
namespace {

TEST(RegionName, that_no_cloud_has_is_noted_where_an_area_prices_it) {
  const Offer us{.provider = "gcp", .region = "us"};
  EXPECT_EQ(unknown_region_note(at("gcp:usx:b"), us), "gcp:usx is no known region: priced as gcp:us");
  for (const char* fine :
       {"gcp:us", "gcp:us-west", "gcp:us-west2", "gcp:us-west2:us-west2-b", "azure:westus"})
    EXPECT_EQ(unknown_region_note(at(fine), us), "") << fine;
  EXPECT_EQ(unknown_region_note(at("gcp:usx"), {.provider = "gcp", .region = "usx"}), "")
      << "by its own offer";
}

}  // namespace
}  // namespace tw::market
