// SPDX-License-Identifier: Apache-2.0
#include "wan/topology_yaml.h"

#include <gmock/gmock.h>

#include <fstream>

namespace tw::wan {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kShipped = TW_SOURCE_DIR "/bench/wan/topologies";

Topology parse(const std::string& text) {
  auto topology = parse_topology(text, "testbed.yaml");
  EXPECT_TRUE(topology) << topology.error().message;
  return topology ? std::move(topology).value() : Topology{};
}

std::string complaint(const std::string& text) {
  const auto topology = parse_topology(text, "testbed.yaml");
  return topology ? "nothing" : topology.error().message;
}

TEST(TopologyFile, says_all_there_is_to_say) {
  const Topology topology = parse(R"(
about: a testbed
mtu: 9000
queue: 20ms
congestion: reno
rmem_max: 1MiB
links:
  - {rtt: 10ms}
  - {between: [us, eu], delay: 50ms, jitter: 2ms, bandwidth: 300mbit}
  - {from: eu, to: us, loss: 0.1%}
sites:
  - {name: us, hosts: 2, nic: 1gbit, egress: 800mbit, ingress: 700mbit, lan_rtt: 1ms}
  - {name: eu, nic_up: 100mbit, nic_down: 200mbit, rmem_max: 4KiB, wmem_max: 8KiB}
)");
  EXPECT_EQ(topology.name, "testbed");
  EXPECT_EQ(topology.about, "a testbed");
  EXPECT_EQ(topology.mtu, 9000);
  EXPECT_EQ(topology.queue, 20ms);
  EXPECT_EQ(topology.congestion, "reno");
  EXPECT_THAT(topology.sites, ElementsAre(Site{.name = "us",
                                               .hosts = 2,
                                               .nic_up_bit_s = 1e9,
                                               .nic_down_bit_s = 1e9,
                                               .egress_bit_s = 800e6,
                                               .ingress_bit_s = 700e6,
                                               .tcp = {.receive_bytes = 1 << 20}},
                                          Site{.name = "eu",
                                               .nic_up_bit_s = 100e6,
                                               .nic_down_bit_s = 200e6,
                                               .tcp = {.receive_bytes = 4096, .send_bytes = 8192}}));
  EXPECT_EQ(topology.link(0, 1), (Link{.bit_s = 300e6, .delay = 50ms, .jitter = 2ms}));
  EXPECT_EQ(topology.link(1, 0), (Link{.bit_s = 300e6, .delay = 50ms, .jitter = 2ms, .loss = 0.001}));
  EXPECT_EQ(topology.link(0, 0), (Link{.delay = 500us})) << "the LAN";
  EXPECT_TRUE(topology.lossy());
}

TEST(TopologyFile, a_link_without_ends_is_every_pair_but_no_lan) {
  const Topology topology = parse("sites: [{name: a, lan_rtt: 2ms}, {name: b}]\nlinks: [{rtt: 80ms}]");
  EXPECT_EQ(topology.link(0, 1).delay, 40ms);
  EXPECT_EQ(topology.link(1, 0).delay, 40ms);
  EXPECT_EQ(topology.link(0, 0).delay, 1ms);
}

TEST(TopologyFile, a_later_link_changes_only_what_it_names) {
  const Topology topology =
      parse("sites: [{name: a}, {name: b}]\nlinks: [{rtt: 80ms, loss: 1%}, {from: a, delay: 1ms}]");
  EXPECT_EQ(topology.link(0, 1), (Link{.delay = 1ms, .loss = 0.01}));
  EXPECT_EQ(topology.link(1, 0), (Link{.delay = 40ms, .loss = 0.01}));
}

TEST(TopologyFile, scale_divides_rates_and_where_asked_buffers) {
  const std::string sites =
      "sites: [{name: a, nic: 1gbit, egress: 2gbit, rmem_max: 40960}, {name: b}]\nlinks: [{bandwidth: "
      "4gbit}]\n";
  const Topology plain = parse("scale: 10\n" + sites);
  EXPECT_EQ(plain.sites[0].nic_up_bit_s, 100e6);
  EXPECT_EQ(plain.sites[0].egress_bit_s, 200e6);
  EXPECT_EQ(plain.link(0, 1).bit_s, 400e6);
  EXPECT_EQ(plain.sites[1].nic_up_bit_s, kUnlimited);
  EXPECT_EQ(plain.sites[0].tcp.receive_bytes, 40960);
  EXPECT_EQ(parse("scale: 10\nscale_buffers: true\n" + sites).sites[0].tcp.receive_bytes, 4096);
}

TEST(TopologyFile, complaints_name_line_key_expectation_and_what_was_found) {
  EXPECT_EQ(complaint("sites:\n  - name: a\n    nic: 5"),
            "testbed.yaml:3: sites.nic: expected a rate from 8kbit to 100gbit, such as 500mbit, found \"5\"");
  EXPECT_EQ(complaint("sites: [{name: a}]\nlinks: [{delay: 11s}]"),
            "testbed.yaml:2: links.delay: expected a time from 0ms to 10s, such as 51.5ms, found \"11s\"");
  EXPECT_EQ(complaint("sites: [{name: a}]\nlinks: [{from: b, delay: 1s}]"),
            "testbed.yaml:2: links: expected the name of a site (a), found \"b\"");
  EXPECT_THAT(complaint("sites: [{name: a, speed: 3}]"),
              HasSubstr("testbed.yaml:1: sites.speed: unknown key; known here: name, hosts"));
  EXPECT_THAT(complaint("sites: [{name: a}, {name: a}]"), HasSubstr("a name of its own for each site"));
  EXPECT_THAT(complaint("sites: [{name: all}]"), HasSubstr("not \"all\""));
  EXPECT_THAT(complaint("sites: [{name: a, hosts: 65}]"), HasSubstr("a number from 1 to 64, found \"65\""));
  EXPECT_THAT(complaint("sites: [{name: a, hosts: 64}, {name: b}]"), HasSubstr("at most 64 hosts in all"));
  EXPECT_THAT(complaint("sites: [{name: a, nic: [1, 2]}]"), HasSubstr("found \"[1, 2]\""));
  EXPECT_THAT(complaint("mtu: 1500\nmtu: 9000\nsites: [{name: a}]"),
              HasSubstr("testbed.yaml:2: mtu: given twice"));
  EXPECT_THAT(complaint("sites: [{name: a}]\nlinks: [{loss: 60%}]"), HasSubstr("found \"60%\""));
  EXPECT_THAT(complaint("sites: [{name: a}, {name: b}]\nlinks: [{between: [a], rtt: 1ms}]"),
              HasSubstr("expected two sites"));
}

TEST(TopologyFile, what_is_no_topology_is_refused) {
  EXPECT_THAT(complaint(""), HasSubstr("sites: expected a list of 1 to 32 sites"));
  EXPECT_THAT(complaint("- a"), HasSubstr("expected keys with values"));
  EXPECT_THAT(complaint("mtu: 1500"), HasSubstr("sites: expected a list of 1 to 32 sites"));
  EXPECT_THAT(complaint("sites: []"), HasSubstr("sites: expected a list"));
  EXPECT_THAT(complaint("sites: [a]"), HasSubstr("expected keys with values"));
  EXPECT_THAT(complaint("sites: [{name: a}\nlinks"), HasSubstr("testbed.yaml:"));
  EXPECT_THAT(complaint("scale: nan\nsites: [{name: a}]"), HasSubstr("scale: expected a number from 1"));
}

TEST(TopologyFile, those_that_ship_are_sound) {
  const auto names = shipped_names(kShipped);
  EXPECT_THAT(names, ElementsAre("a8", "b8", "c8", "d2", "d3", "ec4", "equal4", "hetero4", "rtt300"));
  for (const std::string& name : names) {
    const auto topology = read_topology(name, kShipped);
    ASSERT_TRUE(topology) << topology.error().message;
    EXPECT_EQ(topology.value().name, name);
    EXPECT_FALSE(topology.value().about.empty()) << name;
  }
}

TEST(TopologyFile, that_is_missing_or_has_a_name_for_no_namespace_is_told) {
  const auto missing = read_topology("heter4", kShipped);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("heter4: no such topology"));
  EXPECT_THAT(missing.error().message, HasSubstr("hetero4"));
  const std::string odd = testing::TempDir() + "a b.yaml";
  std::ofstream(odd) << "sites: [{name: a}]";
  const auto refused = read_topology(odd, kShipped);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("expected a file name of 1 to 32 letters"));
}

TEST(Topology, hosts_have_names_and_addresses_by_site) {
  const Topology topology = parse("sites: [{name: us, hosts: 2}, {name: eu}]");
  EXPECT_THAT(topology.hosts(), ElementsAre(Host{0, 1, "us-1", "10.77.1.1"}, Host{0, 2, "us-2", "10.77.1.2"},
                                            Host{1, 1, "eu", "10.77.2.1"}));
}

TEST(TopologyReference, is_what_the_docs_show) {
  std::ifstream file(TW_SOURCE_DIR "/bench/wan/README.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(page, HasSubstr(topology_reference()));
}

}  // namespace
}  // namespace tw::wan
