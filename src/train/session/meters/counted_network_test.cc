// SPDX-License-Identifier: Apache-2.0
#include "train/session/meters/counted_network.h"

#include <gtest/gtest.h>

namespace tw::train {
namespace {

using namespace std::chrono_literals;

struct NoNetwork final : world::Network {
  Result<std::string> open(const std::string&, world::NetworkEvents&) override { return std::string(); }

  void greet_with(Frame) override {}

  void connect(const std::string&) override {}

  void close(PeerId) override {}

  void send(PeerId, Frame) override { ++sent; }

  void pull(PeerId) override {}

  int sent = 0;
};

Frame message(std::size_t head, std::size_t payload = 0) {
  return {Blob(std::vector<std::byte>(head)), Blob(std::vector<std::byte>(payload))};
}

using event::CountsOf;

TEST(CountedNetwork, counts_what_it_is_given_by_the_site_of_the_receiver) {
  NoNetwork door;
  CountedNetwork network(door);
  network.opened(PeerId{1}, "aws:us-east-1:a");
  network.opened(PeerId{2}, "aws:us-east-1:a");
  network.opened(PeerId{3}, "");
  network.send(PeerId{1}, message(10));
  network.send(PeerId{2}, message(5));
  network.handed(PeerId{3}, message(7, 100));
  network.send(PeerId{4}, message(1000));
  EXPECT_EQ(door.sent, 3) << "the door decides what becomes of a message without a link";
  const auto traffic = network.due(Instant(1s));
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->to, (CountsOf{{"", 107}, {"aws:us-east-1:a", 15}}));
}

TEST(CountedNetwork, tells_at_most_every_ten_seconds_and_only_of_more) {
  NoNetwork door;
  CountedNetwork network(door);
  network.opened(PeerId{1}, "s");
  EXPECT_FALSE(network.due(Instant(1s))) << "nothing was sent";
  network.send(PeerId{1}, message(10));
  EXPECT_TRUE(network.due(Instant(2s)));
  network.send(PeerId{1}, message(10));
  EXPECT_FALSE(network.due(Instant(11s)));
  EXPECT_TRUE(network.due(Instant(12s)));
  EXPECT_FALSE(network.due(Instant(30s))) << "nothing new";
  network.send(PeerId{1}, message(10));
  const auto rest = network.rest(Instant(31s));
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->to, (CountsOf{{"s", 30}}));
  EXPECT_FALSE(network.rest(Instant(31s)));
}

TEST(CountedNetwork, does_not_count_what_is_sent_without_a_link) {
  NoNetwork door;
  CountedNetwork network(door);
  network.opened(PeerId{1}, "s");
  network.closed(PeerId{1});
  network.send(PeerId{1}, message(10));
  network.opened(PeerId{1}, "s");
  network.close(PeerId{1});
  network.send(PeerId{1}, message(10));
  EXPECT_FALSE(network.rest(Instant(1s)));
}

TEST(CountedNetwork, knows_so_many_sites) {
  NoNetwork door;
  CountedNetwork network(door);
  for (std::uint64_t i = 1; i <= CountedNetwork::kMostSites + 10; ++i) {
    network.opened(PeerId{i}, "site-" + std::to_string(i));
    network.send(PeerId{i}, message(1));
  }
  const auto traffic = network.rest(Instant(1s));
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->to.size(), CountedNetwork::kMostSites + 1);
  EXPECT_EQ(traffic->to.front(), (std::pair<std::string, std::uint64_t>{"", 10}));
}

TEST(CountedNetwork, tells_what_stores_were_asked) {
  NoNetwork door;
  CountedNetwork network(door);
  network.asked({});
  EXPECT_FALSE(network.due(Instant(1s)));
  network.asked({{"b2", {.reads = 5, .bytes = 110}}, {"r2", {.reads = 1, .bytes = 1}}});
  const auto traffic = network.due(Instant(1s));
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->from, (CountsOf{{"b2", 110}, {"r2", 1}}));
  EXPECT_EQ(traffic->asked, (CountsOf{{"b2", 5}, {"r2", 1}}));
  EXPECT_EQ(traffic->into, CountsOf{});
  network.asked({{"b2", {.reads = 5, .bytes = 110}}, {"r2", {.reads = 1, .bytes = 1}}});
  EXPECT_FALSE(network.due(Instant(20s))) << "nothing is new";
  network.asked({{"b2", {.reads = 5, .bytes = 110, .writes = 4, .written_bytes = 50}}});
  const auto written = network.due(Instant(40s));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->into, (CountsOf{{"b2", 50}}));
  EXPECT_EQ(written->wrote, (CountsOf{{"b2", 4}}));
}

}  // namespace
}  // namespace tw::train
