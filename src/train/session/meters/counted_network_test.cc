// SPDX-License-Identifier: Apache-2.0
#include "train/session/meters/counted_network.h"

#include <gtest/gtest.h>

#include "world/event_table.h"

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

using Numbers = std::vector<std::pair<std::string, double>>;

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
  const auto event = network.due(Instant(1s), 3);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->phase, world::Phase::traffic);
  EXPECT_EQ(event->round, 3U);
  EXPECT_EQ(event->numbers, (Numbers{{"to:", 107}, {"to:aws:us-east-1:a", 15}}));
}

TEST(CountedNetwork, tells_at_most_every_ten_seconds_and_only_of_more) {
  NoNetwork door;
  CountedNetwork network(door);
  network.opened(PeerId{1}, "s");
  EXPECT_FALSE(network.due(Instant(1s), 1)) << "nothing was sent";
  network.send(PeerId{1}, message(10));
  EXPECT_TRUE(network.due(Instant(2s), 1));
  network.send(PeerId{1}, message(10));
  EXPECT_FALSE(network.due(Instant(11s), 2));
  EXPECT_TRUE(network.due(Instant(12s), 2));
  EXPECT_FALSE(network.due(Instant(30s), 2)) << "nothing new";
  network.send(PeerId{1}, message(10));
  const auto rest = network.rest(Instant(31s), 3);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->numbers, (Numbers{{"to:s", 30}}));
  EXPECT_FALSE(network.rest(Instant(31s), 3));
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
  EXPECT_FALSE(network.rest(Instant(1s), 1));
}

TEST(CountedNetwork, knows_so_many_sites) {
  NoNetwork door;
  CountedNetwork network(door);
  for (std::uint64_t i = 1; i <= CountedNetwork::kMostSites + 10; ++i) {
    network.opened(PeerId{i}, "site-" + std::to_string(i));
    network.send(PeerId{i}, message(1));
  }
  const auto event = network.rest(Instant(1s), 1);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->numbers.size(), CountedNetwork::kMostSites + 1);
  EXPECT_EQ(event->numbers.front(), (std::pair<std::string, double>{"to:", 10}));
}

TEST(CountedNetwork, tells_what_stores_were_asked) {
  NoNetwork door;
  CountedNetwork network(door);
  network.asked({});
  EXPECT_FALSE(network.due(Instant(1s), 1));
  network.asked({{"b2", {.reads = 5, .bytes = 110}}, {"r2", {.reads = 1, .bytes = 1}}});
  const auto event = network.due(Instant(1s), 1);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->numbers, (Numbers{{"from:b2", 110}, {"asked:b2", 5}, {"from:r2", 1}, {"asked:r2", 1}}));
  EXPECT_TRUE(is_described(*event));
  network.asked({{"b2", {.reads = 5, .bytes = 110}}, {"r2", {.reads = 1, .bytes = 1}}});
  EXPECT_FALSE(network.due(Instant(20s), 1)) << "nothing is new";
  network.asked({{"b2", {.reads = 5, .bytes = 110, .writes = 4, .written_bytes = 50}}});
  const auto written = network.due(Instant(40s), 1);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->numbers, (Numbers{{"from:b2", 110}, {"asked:b2", 5}, {"into:b2", 50}, {"wrote:b2", 4}}));
  EXPECT_TRUE(is_described(*written));
}

}  // namespace
}  // namespace tw::train
