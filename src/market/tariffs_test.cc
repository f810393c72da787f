// SPDX-License-Identifier: Apache-2.0
#include "market/tariffs.h"

#include <gmock/gmock.h>

#include "market/test_site.h"

namespace tw::market {
namespace {

TEST(Tariffs, areas_pay_what_the_paper_printed) {
  const Tariffs& tariffs = Tariffs::built_in();
  const std::tuple<const char*, const char*, double> kCases[] = {
      {"gc:us", "gc:us", 0.01},
      {"gc:us", "gc:eu", 0.08},
      {"gc:eu", "gc:aus", 0.15},
      {"azure:us-south", "azure:us-west", 0.02},
      {"azure:us-south", "azure:us-south", 0},
      {"onprem:eu", "gc:eu", 0},
      {"lambda:us-west", "lambda:us-west", 0},
  };
  for (const auto& [from, to, usd] : kCases)
    EXPECT_EQ(tariffs.usd_per_gb(at(from), at(to)), usd) << from << " " << to;
}

/// Areas of two clouds may have one name. The paper counts that as traffic between zones.
TEST(Tariffs, areas_pay_for_the_internet_to_another_provider) {
  const Tariffs& tariffs = Tariffs::built_in();
  const std::tuple<const char*, const char*, double> kCases[] = {
      {"gc:us-west", "aws:us-west", 0.12},    {"azure:us-west", "lambda:us-west", 0.0875},
      {"azure:us-south", "gc:eu", 0.0875},    {"gc:eu", "onprem:eu", 0.12},
      {"lambda:us-west", "azure:us-west", 0},
  };
  for (const auto& [from, to, usd] : kCases)
    EXPECT_EQ(tariffs.usd_per_gb(at(from), at(to)), usd) << from << " " << to;
}

TEST(Tariffs, regions_of_the_clouds_pay_by_pair) {
  const Tariffs& tariffs = Tariffs::built_in();
  const std::tuple<const char*, const char*, double> kCases[] = {
      {"aws:us-east-1", "aws:us-east-2", 0.01},
      {"aws:us-east-1", "aws:us-west-2", 0.02},
      {"aws:us-east-1", "gcp:us-central1", 0.09},
      {"aws:us-east-1", "onprem:eu", 0.09},
      {"aws:ap-southeast-2", "onprem:eu", 0.114},
      {"aws:us-east-1:use1-az1", "aws:us-east-1:use1-az1", 0},
      {"aws:us-east-1:use1-az1", "aws:us-east-1:use1-az2", 0.01},
      {"gcp:us-central1", "gcp:us-west1", 0.01},
      {"gcp:us-central1", "gcp:europe-west4", 0.08},
      {"gcp:us-central1", "gcp:australia-southeast1", 0.15},
      {"gcp:us-central1", "aws:ap-southeast-2", 0.19},
      {"gcp:us-central1", "aws:eu-west-1", 0.12},
      {"azure:eastus", "azure:westus2", 0.02},
      {"azure:eastus", "azure:westeurope", 0.05},
      {"azure:japaneast", "aws:us-east-1", 0.12},
      {"lambda:us-west-1", "gcp:us-central1", 0},
      {"garage:shelf", "gcp:us-central1", 0},
  };
  for (const auto& [from, to, usd] : kCases)
    EXPECT_DOUBLE_EQ(tariffs.usd_per_gb(at(from), at(to)), usd) << from << " " << to;
}

TEST(Tariffs, more_gb_of_a_month_cost_less) {
  const Tariffs& tariffs = Tariffs::built_in();
  const Site here = at("aws:us-east-1");
  const Site there = at("gcp:us-central1");
  EXPECT_EQ(tariffs.usd_per_gb(here, there, 9'999), 0.09);
  EXPECT_EQ(tariffs.usd_per_gb(here, there, 10'000), 0.085);
  EXPECT_EQ(tariffs.usd_per_gb(here, there, 1e6), 0.05);
  EXPECT_NEAR(tariffs.usd(here, there, 20'000), 10'000 * 0.09 + 10'000 * 0.085, 1e-9);
  EXPECT_NEAR(tariffs.usd(here, there, 1'000, 9'500), 500 * 0.09 + 500 * 0.085, 1e-9);
  EXPECT_NEAR(tariffs.usd(here, there, 200'000),
              10'000 * 0.09 + 40'000 * 0.085 + 100'000 * 0.07 + 50'000 * 0.05, 1e-9);
}

TEST(Tariffs, own_rows_replace_those_there_are) {
  Tariffs tariffs = Tariffs::built_in();
  const std::string header = "provider,traffic,from_gb,usd_per_gb,source,as_of\n";
  ASSERT_TRUE(tariffs.add_classes("own.csv", header + "aws,internet,0,0.03,contract,2026-01-01\n").ok());
  EXPECT_EQ(tariffs.usd_per_gb(at("aws:us-east-1"), at("gcp:us-central1")), 0.03);
  EXPECT_EQ(tariffs.usd_per_gb(at("aws:us-east-1"), at("gcp:us-central1"), 1e6), 0.03);
  EXPECT_EQ(tariffs.tariff(at("aws:us-east-1"), at("gcp:us-central1"))->source, "contract, 2026-01-01");
  const auto message = [&](const std::string& rows) {
    const Status added = tariffs.add_classes("own.csv", header + rows);
    return added ? "read" : added.error().message;
  };
  EXPECT_EQ(
      message("aws,roaming,0,0.03,x,2026-01-01\n"),
      "own.csv:2: traffic roaming: expected one of inside, inter-zone, inter-region-us, inter-region-eu, "
      "inter-region-asia, inter-region-aus, to-or-from-aus, between-continents, internet");
  EXPECT_EQ(message("aws,internet,10,0.03,x,2026-01-01\n"),
            "own.csv:2: from_gb 10: expected 0 in the first row of a tariff");
  EXPECT_EQ(message("aws,internet,0,0.03,x,2026-01-01\naws,internet,0,0.02,x,2026-01-01\n"),
            "own.csv:3: from_gb 0: expected more than the 0 GB of the step before");
}

TEST(Stores, are_read_at_their_price_or_as_traffic_from_their_region) {
  const Tariffs& tariffs = Tariffs::built_in();
  const DataStore b2 = tariffs.store("b2").value();
  EXPECT_EQ(tariffs.read_usd_per_gb(b2, at("gcp:us-central1")), 0.01);
  EXPECT_EQ(b2.stored_usd_per_gb_month, 0.005);
  const DataStore s3 = tariffs.store("s3:us-east-1").value();
  EXPECT_EQ(tariffs.read_usd_per_gb(s3, at("aws:us-east-1")), 0);
  EXPECT_EQ(tariffs.read_usd_per_gb(s3, at("aws:us-east-1:us-east-1a")), 0);
  EXPECT_EQ(tariffs.read_usd_per_gb(s3, at("gcp:us-central1")), 0.09);
  const DataStore az = tariffs.store("az:eastus").value();
  EXPECT_EQ(tariffs.read_usd_per_gb(az, at("azure:eastus")), 0);
  EXPECT_GT(tariffs.read_usd_per_gb(az, at("aws:us-east-1")), 0.05);
  EXPECT_FALSE(az.usd_per_million_reads.has_value());
  EXPECT_EQ(s3.usd_per_million_writes, 5);
  EXPECT_EQ(tariffs.write_usd_per_gb(at("aws:us-east-1:us-east-1a"), s3), 0);
  EXPECT_EQ(tariffs.write_usd_per_gb(at("aws:us-west-2"), s3),
            tariffs.usd_per_gb(at("aws:us-west-2"), at("aws:us-east-1")));
  EXPECT_EQ(tariffs.write_usd_per_gb(at("aws:us-east-1"), b2), 0.09) << "as traffic to the internet";
  for (const char* name : {"s4", "s3", "b2:us"})
    EXPECT_EQ(
        tariffs.store(name).error().message,
        std::string("data store ") + name + ": expected one of az:REGION, b2, gcs:REGION, r2, s3:REGION");
}

}  // namespace
}  // namespace tw::market
