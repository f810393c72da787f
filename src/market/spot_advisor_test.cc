// SPDX-License-Identifier: Apache-2.0
#include "market/spot_advisor.h"

#include <gtest/gtest.h>

#include "market/lifetimes.h"

namespace tw::market {
namespace {

constexpr const char* kData = R"({"global_rate": "<10%",
  "ranges": [{"index": 0, "label": "<5%", "dots": 0, "max": 5}],
  "instance_types": {"g5.xlarge": {"cores": 4, "emr": true, "ram_gb": 16.0}},
  "spot_advisor": {"us-east-1": {"Linux": {"g5.xlarge": {"s": 62, "r": 1}, "p3.2xlarge": {"s": 70, "r": 4}},
                                 "Windows": {"g5.xlarge": {"s": 40, "r": 3}}}}})";

Offer offer(const char* provider, const char* region, Purchase purchase) {
  return {
      .provider = provider, .region = region, .vm_type = "g5.xlarge", .gpu = "A10G", .purchase = purchase};
}

TEST(SpotAdvisor, tells_how_many_linux_machines_were_taken_within_30_days) {
  const SpotAdvisor advisor = SpotAdvisor::read("data.json", kData).value();
  EXPECT_EQ(advisor.size(), 2U);
  EXPECT_EQ(advisor.taken_in_30_days("us-east-1", "g5.xlarge"), 0.075);
  EXPECT_EQ(advisor.taken_in_30_days("us-east-1", "p3.2xlarge"), 0.25);
  EXPECT_EQ(advisor.taken_in_30_days("us-west-1", "g5.xlarge"), 0);
}

TEST(SpotAdvisor, is_what_lifetimes_of_spot_machines_follow) {
  std::vector<Offer> offers{
      offer("aws", "us-east-1", Purchase::spot), offer("aws", "us-east-1", Purchase::on_demand),
      offer("gcp", "us-east-1", Purchase::spot), offer("aws", "us-west-1", Purchase::spot)};
  SpotAdvisor::read("data.json", kData).value().fill_in(offers);
  EXPECT_EQ(offers[0].taken_in_30_days, 0.075);
  for (std::size_t other : {1U, 2U, 3U}) EXPECT_EQ(offers[other].taken_in_30_days, 0) << other;
  const LifetimeLaw law = lifetimes_for(offers[0]);
  EXPECT_NEAR(law.gone_by(30 * 24), 0.075, 1e-9);
  EXPECT_EQ(law.source, "7.5 % within 30 days, at a constant rate: its offer");
  EXPECT_NEAR(lifetimes_for(offers[3]).gone_by(30 * 24), 0.125, 1e-9);
}

TEST(SpotAdvisor, names_what_it_cannot_read) {
  const auto message = [](const char* text) { return SpotAdvisor::read("data.json", text).error().message; };
  for (const char* other : {"", "{", "[]", R"({"spot_advisor": 3})"})
    EXPECT_EQ(message(other),
              "data.json: expected AWS's spot-advisor-data.json, an object with spot_advisor");
  for (const char* bad : {"{}", R"({"r": 5})", R"({"r": "x"})", "3"})
    EXPECT_EQ(message((R"({"spot_advisor": {"eu": {"Linux": {"g5": )" + std::string(bad) + "}}}}").c_str()),
              "data.json: eu g5: r: expected a range from 0 to 4");
}

}  // namespace
}  // namespace tw::market
