// SPDX-License-Identifier: Apache-2.0
#include "wan/status_json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace tw::wan {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

Topology two_sites() {
  Topology topology{.name = "testbed", .scale = 10};
  topology.sites = {{.name = "us", .hosts = 2, .nic_up_bit_s = 1e9}, {.name = "eu"}};
  topology.links.resize(4);
  topology.link(0, 1) = {.bit_s = 3e8, .delay = 50ms};
  return topology;
}

BoxState state_of(const Topology& topology) {
  BoxState state{.pid = 7, .up_s = 2};
  state.links = topology.links;
  state.traffic.resize(4);
  state.traffic[1] = {.bytes = 5, .dropped = 3, .flying_bytes = 9};
  state.bit_s = {0, 1e6, 0, 0};
  state.hosts.resize(3);
  state.sites.resize(2);
  return state;
}

TEST(StatusJson, has_limits_as_numbers_and_none_as_null) {
  const auto json = nlohmann::json::parse(topology_json(two_sites()));
  EXPECT_EQ(json["hosts"][1]["name"], "us-2");
  EXPECT_EQ(json["hosts"][1]["up_bit_s"], 1e9);
  EXPECT_TRUE(json["hosts"][1]["down_bit_s"].is_null());
  EXPECT_EQ(json["links"][1]["to"], "eu");
  EXPECT_EQ(json["links"][1]["delay_ms"], 50);
  EXPECT_NEAR(json["payload_share"].get<double>(), 1448.0 / 1500, 1e-12);
}

TEST(StatusJson, tells_what_links_carry_and_that_the_box_keeps_up) {
  const Topology topology = two_sites();
  const auto json = nlohmann::json::parse(status_json(topology, state_of(topology)));
  EXPECT_EQ(json["links"][1]["carried_bit_s"], 1e6);
  EXPECT_EQ(json["links"][1]["dropped"], 3);
  EXPECT_EQ(json["box"]["overloaded"], false);
  EXPECT_EQ(json["box"]["pid"], 7);
}

TEST(StatusText, names_the_factor_and_leaves_out_the_lan_of_a_lone_host) {
  const Topology topology = two_sites();
  const std::string text = status_text(status_json(topology, state_of(topology)));
  EXPECT_THAT(text, HasSubstr("divided by 10"));
  EXPECT_THAT(text, HasSubstr("us:us"));
  EXPECT_THAT(text, Not(HasSubstr("eu:eu")));
  EXPECT_THAT(text, Not(HasSubstr("OVERLOADED")));
}

TEST(StatusText, says_so_when_the_box_was_the_limit) {
  const Topology topology = two_sites();
  BoxState state = state_of(topology);
  state.load.close(950ms, 1s, 0);
  EXPECT_THAT(status_text(status_json(topology, state)), HasSubstr("OVERLOADED in 1 s: 95 % of a core used"));
}

}  // namespace
}  // namespace tw::wan
