// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/cloud_names.h"

#include <gtest/gtest.h>

#include "launch/engines/test_clouds.h"

namespace tw::launch {
namespace {

Gpus gpus_in(const std::string& text) { return gpus_of(Machine{.gpu = text}); }

TEST(CloudNames, count_the_gpus_of_a_machine) {
  EXPECT_EQ(gpus_in("T4"), (Gpus{"T4", 1}));
  EXPECT_EQ(gpus_in("4xT4"), (Gpus{"T4", 4}));
  EXPECT_EQ(gpus_in("RTX8000"), (Gpus{"RTX8000", 1}));
  EXPECT_EQ(gpus_in("8xA100-80GB"), (Gpus{"A100-80GB", 8}));
  EXPECT_EQ(gpus_in(""), (Gpus{"", 0}));
  EXPECT_EQ(gpus_in("cpu"), (Gpus{"", 0}));
}

TEST(CloudNames, take_what_a_cloud_would_take_for_a_type) {
  EXPECT_EQ(type_of(gcp_t4()), "n1-standard-8");
  EXPECT_EQ(type_of(aws_t4()), "g4dn.xlarge");
  EXPECT_EQ(type_of(Machine{.vm_type = "n1 with 8 V100"}), "");
}

TEST(CloudNames, tell_ids_of_zones_from_their_names) {
  Machine machine = aws_t4();
  EXPECT_EQ(zone_of(machine), "us-east-1a");
  EXPECT_EQ(aws_zone_id_of(machine), "");
  machine.site.zone = "use1-az12";
  EXPECT_EQ(zone_of(machine), "");
  EXPECT_EQ(aws_zone_id_of(machine), "use1-az12");
}

TEST(CloudNames, have_no_region_for_an_area) {
  EXPECT_EQ(region_of(Machine{.site = market::site_at("aws", "us-west")}), "");
  EXPECT_EQ(region_of(aws_t4()), "us-east-1");
}

TEST(CloudNames, a_peer_that_may_stand_at_several_sites_has_none) {
  PeerJob peer = peer_on(2, aws_t4());
  EXPECT_EQ(with_common_site(peer).machine.site, aws_t4().site);
  peer.alternatives = {on_demand(aws_t4())};
  EXPECT_EQ(with_common_site(peer).machine.site, aws_t4().site);
  peer.alternatives.push_back(gcp_t4());
  EXPECT_EQ(with_common_site(peer).machine.site, market::Site{});
}

}  // namespace
}  // namespace tw::launch
