// SPDX-License-Identifier: Apache-2.0
#include "market/network.h"

#include <gmock/gmock.h>

namespace tw {
namespace {

Site at(const std::string& text) { return parse_site(text).value(); }

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
