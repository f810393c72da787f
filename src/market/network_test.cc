// SPDX-License-Identifier: Apache-2.0
#include "market/network.h"

#include <gmock/gmock.h>

#include "market/test_site.h"

namespace tw::market {
namespace {

TEST(Network, pairs_carry_what_was_measured) {
  const NetworkProfile& network = NetworkProfile::built_in();
  EXPECT_NEAR(network.rtt_s(at("gc:eu"), at("gc:us")), 0.103138, 1e-9);
  EXPECT_NEAR(network.bytes_per_s(at("gc:eu"), at("gc:us"), 1), 214.5e6 / 8, 1);
  EXPECT_NEAR(network.bytes_per_s(at("gc:eu"), at("gc:us"), 10), 2145e6 / 8, 1);
  EXPECT_NEAR(network.bytes_per_s(at("gc:eu"), at("gc:us"), 80), 6198e6 / 8, 1);
  EXPECT_EQ(network.path(at("gc:eu"), at("onprem-dgx2:eu")), network.path(at("onprem-dgx2:eu"), at("gc:eu")));
}

TEST(Network, regions_of_the_clouds_have_their_round_trips) {
  const NetworkProfile& network = NetworkProfile::built_in();
  const Site virginia = at("aws:us-east-1:use1-az1");
  const Site ireland = at("aws:eu-west-1");
  EXPECT_DOUBLE_EQ(network.rtt_s(virginia, ireland), 0.0849);
  EXPECT_EQ(network.rtt_s(virginia, ireland), network.rtt_s(ireland, virginia));
  EXPECT_NEAR(network.bytes_per_s(virginia, ireland, 4), 4 * 2.6e6 / network.rtt_s(virginia, ireland), 1);
  EXPECT_NEAR(network.bytes_per_s(virginia, ireland, 64), 5e9 / 8, 1);  // the assumed limit of a host
}

TEST(Network, a_region_that_no_row_names_has_the_rates_of_its_area) {
  const NetworkProfile& network = NetworkProfile::built_in();
  EXPECT_EQ(network.path(at("gcp:europe-west99"), at("gcp:us-east99")),
            network.path(at("gc:eu"), at("gc:us")));
  EXPECT_EQ(network.path(at("gcp:us-west99"), at("aws:us-west99")),
            network.path(at("gc:us-west"), at("aws:us-west")));
  const PathRate within = network.path(at("gcp:us-west98"), at("gcp:us-west99"));
  EXPECT_FALSE(within.measured);  // the LAN of us-west is no path between its regions
  EXPECT_EQ(within.rtt_s, 0.035);
  const PathRate lan = network.path(at("gcp:us-west99:a"), at("gcp:us-west99:a"));
  EXPECT_NEAR(lan.path_bytes_per_s, 6352e6 / 8, 1);
}

TEST(Network, what_nobody_measured_is_an_estimate) {
  const NetworkProfile& network = NetworkProfile::built_in();
  const PathRate far = network.path(at("runpod:EU"), at("runpod:US"));
  EXPECT_FALSE(far.measured);
  EXPECT_NEAR(far.rtt_s, 0.103, 0.06);  // as between the same areas elsewhere
  EXPECT_NEAR(far.stream_bytes_per_s, 2.6e6 / far.rtt_s, 1);
  EXPECT_EQ(network.rtt_s(at("garage:shelf"), at("gcp:us-central1")), 0.2);
  EXPECT_EQ(network.rtt_s(at("garage:shelf"), at("garage:shelf")), 0.0007);
  const PathRate home = network.path(at("onprem:cellar"), at("gcp:us-central1"));
  EXPECT_NEAR(home.stream_bytes_per_s, 1.1e6 / home.rtt_s, 1);
}

constexpr const char* kOwn =
    "from,to,rtt_ms,stream_mbit_s,path_mbit_s,source,as_of\n"
    "onprem:cellar,gcp:us-central1,120,80,400,own,2026-01-02\n"
    "onprem:cellar,onprem:cellar,0.2,9000,,own,2026-01-02\n"
    "onprem:cellar,*,,,500,contract,2025-12-31\n";

TEST(Network, own_rows_come_first_and_read_back_as_they_were_written) {
  const auto own = read_network("own.csv", kOwn);
  ASSERT_TRUE(own.ok()) << own.error().message;
  NetworkProfile network = NetworkProfile::built_in();
  network.merge(own.value());
  const Site cellar = at("onprem:cellar");
  EXPECT_NEAR(network.bytes_per_s(cellar, at("gcp:us-central1:us-central1-a"), 2), 160e6 / 8, 1);
  EXPECT_NEAR(network.bytes_per_s(at("gcp:us-central1"), cellar, 100), 400e6 / 8, 1);
  EXPECT_NEAR(network.caps(cellar).host_bytes_per_s, 9000e6 / 8, 1);
  EXPECT_NEAR(network.caps(cellar).site_bytes_per_s, 500e6 / 8, 1);
  EXPECT_EQ(write_network(own.value()), kOwn);
}

TEST(Network, a_bad_row_is_named) {
  const auto message = [](const std::string& row) {
    const auto read =
        read_network("own.csv", "from,to,rtt_ms,stream_mbit_s,path_mbit_s,source,as_of\n" + row + "\n");
    return read ? "read" : read.error().message;
  };
  EXPECT_EQ(message("cellar,gcp:us,1,2,3,own,2026-01-02"),
            "own.csv:2: from cellar: expected PROVIDER:REGION or PROVIDER:REGION:ZONE");
  EXPECT_EQ(message("a:b,gcp:us,fast,2,3,own,2026-01-02"),
            "own.csv:2: rtt_ms fast: expected a number from 0");
  EXPECT_EQ(message("a:b,gcp:us,1,,3,own,2026-01-02"),
            "own.csv:2: stream_mbit_s is empty: expected a number from 1e-06");
  EXPECT_EQ(message("a:b,gcp:us,1,2,3,own,soon"),
            "own.csv:2: as_of soon: expected a date such as 2023-04-25");
}

}  // namespace
}  // namespace tw::market
