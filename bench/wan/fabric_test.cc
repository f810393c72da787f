// SPDX-License-Identifier: Apache-2.0
#include "wan/fabric.h"

#include <gtest/gtest.h>

namespace tw::wan {
namespace {

using namespace std::chrono_literals;

constexpr Instant kFabricStart = Instant(1s);

Topology sites(std::vector<Site> list) {
  Topology topology{.name = "test", .sites = std::move(list)};
  topology.links.resize(topology.sites.size() * topology.sites.size());
  return topology;
}

std::uint32_t address(std::size_t site, int number) {
  return 10U << 24 | 77U << 16 | static_cast<std::uint32_t>(site + 1) << 8 |
         static_cast<std::uint32_t>(number);
}

struct Arrival {
  std::size_t host;
  std::size_t tag;  ///< size of the frame, which nothing else looks at
  Duration after;
  bool operator==(const Arrival&) const = default;
};

void PrintTo(const Arrival& arrival, std::ostream* out) {
  *out << "to host " << arrival.host << " tag " << arrival.tag << " after " << arrival.after.count() << " ns";
}

/// A fabric whose clock stands where the test puts it.
class Testbed {
 public:
  explicit Testbed(const Topology& topology) : fabric(topology, false, 1) {}

  void send(std::size_t host, std::uint32_t to, std::uint32_t bytes, std::size_t tag) {
    Frame frame{.bytes = nullptr, .size = tag};
    ASSERT_TRUE(fabric.push(host, {.destination = to, .packets = 1, .wire_bytes = bytes}, frame, now));
  }

  /// Runs from event to event, as the box would.
  std::vector<Arrival> run_until(Instant end) {
    std::vector<Arrival> arrivals;
    const auto deliver = [&](std::size_t host, const Frame& frame, Instant due) {
      arrivals.push_back({host, frame.size, due - kFabricStart});
    };
    while (fabric.next_step() <= end) {
      now = fabric.next_step();
      fabric.step(now, deliver);
    }
    now = end;
    return arrivals;
  }

  Fabric fabric;
  Instant now = kFabricStart;
};

using Arrivals = std::vector<Arrival>;

TEST(Fabric, delays_between_sites_and_within_a_lan) {
  Topology topology = sites({{.name = "us", .hosts = 2}, {.name = "eu"}});
  topology.link(0, 1).delay = 50ms;
  topology.link(0, 0).delay = 1ms;
  Testbed testbed(topology);
  testbed.send(0, address(1, 1), 100, 1);
  testbed.send(0, address(0, 2), 100, 2);
  EXPECT_EQ(testbed.run_until(kFabricStart + 1s), (Arrivals{{1, 2, 1ms}, {2, 1, 50ms}}));
}

TEST(Fabric, has_no_host_at_other_addresses) {
  Testbed testbed(sites({{.name = "us"}}));
  Frame frame{.bytes = nullptr, .size = 1};
  EXPECT_FALSE(
      testbed.fabric.push(0, {.destination = address(3, 1), .wire_bytes = 100}, frame, kFabricStart));
  EXPECT_EQ(testbed.fabric.next_step(), kNever);
}

TEST(Fabric, hosts_of_a_site_share_its_egress_but_not_their_nics) {
  Topology topology = sites(
      {{.name = "us", .hosts = 2, .nic_up_bit_s = 8e6, .egress_bit_s = 8e6}, {.name = "eu", .hosts = 2}});
  Testbed testbed(topology);
  testbed.send(0, address(1, 1), 1000, 1);
  testbed.send(1, address(1, 2), 1000, 2);
  EXPECT_EQ(testbed.run_until(kFabricStart + 1s), (Arrivals{{2, 1, 2ms}, {3, 2, 3ms}}));
}

TEST(Fabric, a_lan_does_not_use_egress_or_ingress) {
  Topology topology =
      sites({{.name = "us", .hosts = 2, .nic_up_bit_s = 8e6, .egress_bit_s = 8e3, .ingress_bit_s = 8e3}});
  Testbed testbed(topology);
  testbed.send(0, address(0, 2), 1000, 1);
  EXPECT_EQ(testbed.run_until(kFabricStart + 1s), (Arrivals{{1, 1, 1ms}}));
}

TEST(Fabric, senders_far_and_near_share_a_receiver_in_the_order_of_arrival) {
  Topology topology = sites({{.name = "far"}, {.name = "near"}, {.name = "here", .nic_down_bit_s = 8e6}});
  topology.link(0, 2).delay = 100ms;
  Testbed testbed(topology);
  testbed.send(0, address(2, 1), 1000, 1);
  testbed.send(1, address(2, 1), 1000, 2);
  EXPECT_EQ(testbed.run_until(kFabricStart + 1s), (Arrivals{{2, 2, 1ms}, {2, 1, 101ms}}));
}

TEST(Fabric, drops_at_a_full_queue_and_counts_it) {
  Topology topology = sites({{.name = "a"}, {.name = "b"}});
  topology.link(0, 1).bit_s = 8e6;
  Testbed testbed(topology);
  for (std::size_t i = 0; i < 300; ++i) testbed.send(0, address(1, 1), 1000, i);
  const auto arrivals = testbed.run_until(kFabricStart + 10s);
  const Traffic traffic = testbed.fabric.traffic(0, 1, testbed.now);
  EXPECT_EQ(arrivals.size(), 262u) << "4 x 64 KiB of room";
  EXPECT_EQ(traffic.dropped, 38u);
  EXPECT_EQ(traffic.bytes, 262'000u);
  EXPECT_EQ(traffic.flying_bytes, 0u);
}

TEST(Fabric, an_outage_loses_all_packets_of_its_direction) {
  Topology topology = sites({{.name = "a"}, {.name = "b"}});
  Testbed testbed(topology);
  testbed.fabric.change(0, 1, {.outage = true}, kFabricStart);
  testbed.send(0, address(1, 1), 100, 1);
  testbed.send(1, address(0, 1), 100, 2);
  EXPECT_EQ(testbed.run_until(kFabricStart + 1s), (Arrivals{{0, 2, 0ms}}));
  EXPECT_EQ(testbed.fabric.traffic(0, 1, testbed.now).lost, 1u);
}

TEST(Fabric, loses_the_share_that_was_asked_for) {
  Topology topology = sites({{.name = "a"}, {.name = "b"}});
  topology.link(0, 1).loss = 0.1;
  Testbed testbed(topology);
  for (std::size_t i = 0; i < 10'000; ++i) testbed.send(0, address(1, 1), 100, i);
  const auto arrived = static_cast<double>(testbed.run_until(kFabricStart + 1s).size());
  EXPECT_NEAR(arrived, 9000, 120) << "four standard deviations";
}

TEST(Fabric, a_link_that_drops_to_a_tenth_slows_what_waits_before_it) {
  Topology topology = sites({{.name = "a"}, {.name = "b"}});
  topology.link(0, 1) = {.bit_s = 8e6, .delay = 20ms};
  Testbed testbed(topology);
  for (std::size_t i = 1; i <= 4; ++i) testbed.send(0, address(1, 1), 1000, i);
  EXPECT_EQ(testbed.run_until(kFabricStart + 2500us), (Arrivals{}));
  testbed.fabric.change(0, 1, {.bit_s = 0.8e6, .delay = 20ms}, testbed.now);
  EXPECT_EQ(testbed.run_until(kFabricStart + 1s),
            (Arrivals{{1, 1, 21ms}, {1, 2, 22ms}, {1, 3, 27500us}, {1, 4, 37500us}}));
}

}  // namespace
}  // namespace tw::wan
