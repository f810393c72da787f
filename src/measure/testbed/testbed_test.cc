// SPDX-License-Identifier: Apache-2.0
#include "measure/testbed/testbed.h"

#include <gtest/gtest.h>

namespace tw::measure {
namespace {

/// Two hosts of 80 Mbit/s at a site that lets 100 Mbit/s out, and one of 240 at another; half of all is
/// payload.
constexpr const char* kTestbed = R"({
  "topology": "pair", "about": "a pair of sites", "scale": 10.0, "payload_share": 0.5,
  "sites": [{"name": "a", "egress_bit_s": 100e6, "ingress_bit_s": null},
            {"name": "b", "egress_bit_s": null, "ingress_bit_s": null}],
  "hosts": [{"name": "a-1", "site": "a", "address": "10.77.1.1", "up_bit_s": 80e6, "down_bit_s": 80e6},
            {"name": "a-2", "site": "a", "address": "10.77.1.2", "up_bit_s": 80e6, "down_bit_s": 80e6},
            {"name": "b", "site": "b", "address": "10.77.2.1", "up_bit_s": 240e6, "down_bit_s": 240e6}],
  "links": [{"from": "a", "to": "b", "bit_s": null}, {"from": "b", "to": "a", "bit_s": 40e6}]})";

TEST(TestbedPlan, has_hosts_with_names_addresses_and_lines_less_headers) {
  const TestbedPlan plan = parse_testbed(kTestbed, 0).value();
  EXPECT_EQ(plan.name, "pair");
  EXPECT_EQ(plan.scale, 10);
  ASSERT_EQ(plan.hosts.size(), 3U);
  EXPECT_EQ(plan.hosts[1].name, "a-2");
  EXPECT_EQ(plan.hosts[2].address, "10.77.2.1");
  EXPECT_EQ(plan.hosts[2].site, "b");
  EXPECT_EQ(plan.cards[0].bandwidth, (wire::Bandwidth{5e6, 5e6, {}}));
  EXPECT_EQ(plan.cards[2].bandwidth, (wire::Bandwidth{15e6, 15e6, {}}));
}

TEST(TestbedPlan, bounds_an_averaging_by_the_lines_of_hosts_and_of_sites) {
  // 2 (3 - 1) / (5 + 5 + 15) = 0.16 below 1 / 5 s/MB of the slowest host; the link from b to a carries
  // 2.5 MB/s, and no split of the work between the two sites lets less than a whole vector cross it.
  EXPECT_NEAR(bound_seconds(1'000'000, parse_testbed(kTestbed, 0).value()), 0.4, 1e-9);
  // The first two hosts are in one site, whose limits they never meet.
  EXPECT_NEAR(bound_seconds(1'000'000, parse_testbed(kTestbed, 2).value()), 0.2, 1e-9);
}

TEST(TestbedPlan, has_no_more_hosts_than_the_topology) {
  EXPECT_EQ(parse_testbed(kTestbed, 4).error().message, "--peers 4: pair has 3 hosts, for example --peers 3");
  EXPECT_FALSE(parse_testbed("no JSON", 0));
}

TEST(BoxReport, tells_when_the_box_was_the_limit) {
  const auto report = [](const char* box) { return parse_box(box).value(); };
  const BoxReport well =
      report(R"({"box": {"cpu_share_max": 0.4, "overloaded": false, "overloaded_s": 0, "why": ""}})");
  EXPECT_EQ(well.cpu_share_max, 0.4);
  EXPECT_EQ(well.limited_by, "");
  EXPECT_EQ(
      report(R"({"box": {"cpu_share_max": 0.99, "overloaded": true, "overloaded_s": 3, "why": "late"}})")
          .limited_by,
      "3 s: late");
}

}  // namespace
}  // namespace tw::measure
