// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/links.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

using world::Phase;

constexpr const char* kEast = "aws:us-east-1:a";
constexpr const char* kWest = "gcp:us-west1:b";

class LinkStory {
 public:
  void start(std::uint64_t peer, double t, const char* site) {
    take(peer, t, {.fact = event::Start{.site = site}});
  }

  void sent(std::uint64_t peer, double t, const char* to, std::uint64_t bytes) {
    take(peer, t, {.fact = event::Traffic{.to = {{to, bytes}}}});
  }

  void read(std::uint64_t peer, double t, const std::string& store, std::uint64_t bytes,
            std::uint64_t requests) {
    take(peer, t, {.fact = event::Traffic{.from = {{store, bytes}}, .asked = {{store, requests}}}});
  }

  std::vector<BoardLink> board(double now_s) const { return links.board(now_s, peers); }

  std::vector<BoardPeer> peers{};
  Links links{[](const std::string& from, const std::string& to) -> std::optional<double> {
    if (from.empty() || to.empty()) return std::nullopt;
    return from == to ? 0 : 0.1;
  }};

 private:
  void take(std::uint64_t peer, double t, world::Event event) {
    const LogEntry entry{.writer = PeerId{peer}, .event = std::move(event)};
    links.take({entry, t});
  }
};

BoardLink read_from(const char* store, std::uint64_t bytes, std::uint64_t requests) {
  return {.from = store, .to = kEast, .bytes = bytes, .store = store, .requests = requests};
}

BoardLink written_to(const char* store, std::uint64_t bytes, std::uint64_t requests) {
  return {.from = kEast, .to = store, .bytes = bytes, .store = store, .requests = requests};
}

wire::Status status_with(std::vector<BoardLink> links) {
  wire::Status status;
  status.peer.site = kEast;
  status.links = std::move(links);
  return status;
}

TEST(Links, add_up_what_peers_of_a_site_sent) {
  LinkStory story;
  story.start(1, 0, kEast);
  story.start(2, 0, kEast);
  story.sent(1, 20, kWest, 1e9);
  story.sent(2, 20, kWest, 3e9);
  story.sent(2, 20, kEast, 5e9);
  const std::vector<BoardLink> board = story.board(21);
  ASSERT_EQ(board.size(), 2U);
  EXPECT_EQ(board[0].to, kEast);
  EXPECT_EQ(board[0].usd, 0);
  EXPECT_EQ(board[1].to, kWest);
  EXPECT_EQ(board[1].bytes, 4'000'000'000U);
  EXPECT_DOUBLE_EQ(board[1].usd, 0.4);
  EXPECT_DOUBLE_EQ(board[1].mbit_s, 4e9 * 8e-6 / 20);
  EXPECT_EQ(story.board(60)[1].mbit_s, 0) << "nothing was told for long";
  EXPECT_DOUBLE_EQ(story.links.usd_of(PeerId{2}).bytes, 0.3);
}

TEST(Links, measure_rates_over_ten_seconds_and_more) {
  LinkStory story;
  story.start(1, 0, kEast);
  story.sent(1, 10, kWest, 1e6);
  story.sent(1, 11, kWest, 9e6);
  EXPECT_DOUBLE_EQ(story.board(11)[0].mbit_s, 0.8) << "a second tells little";
  EXPECT_EQ(story.board(11)[0].bytes, 9'000'000U);
  story.sent(1, 20, kWest, 11e6);
  EXPECT_DOUBLE_EQ(story.board(20)[0].mbit_s, 8);
}

TEST(Links, go_on_counting_after_a_restart) {
  LinkStory story;
  story.start(1, 0, kEast);
  story.sent(1, 10, kWest, 100);
  story.start(1, 50, kEast);
  story.sent(1, 60, kWest, 7);
  EXPECT_EQ(story.board(60)[0].bytes, 107U);
  EXPECT_EQ(story.links.links_of(PeerId{1}),
            (std::vector<BoardLink>{{.from = kEast, .to = kWest, .bytes = 107}}));
}

TEST(Links, come_from_stores_with_their_requests) {
  LinkStory story;
  story.start(1, 0, kEast);
  story.start(2, 0, kEast);
  story.read(1, 10, "b2", 1e9, 500'000);
  story.read(2, 10, "b2", 2e9, 1'000'000);
  story.start(2, 11, kEast);
  story.read(2, 20, "b2", 1e9, 1'000'000);
  const std::vector<BoardLink> board = story.board(20);
  ASSERT_EQ(board.size(), 1U);
  EXPECT_EQ(board[0].from, "b2");
  EXPECT_EQ(board[0].to, kEast);
  EXPECT_EQ(board[0].bytes, 4'000'000'000U);
  EXPECT_EQ(board[0].requests, 2'500'000U);
  EXPECT_DOUBLE_EQ(board[0].usd, 0.4);
  EXPECT_DOUBLE_EQ(board[0].requests_usd.value(), 2.5 * usual_request_prices("b2").reads.value());
  EXPECT_DOUBLE_EQ(story.links.usd_of(PeerId{1}).requests, 0.5 * usual_request_prices("b2").reads.value());
  EXPECT_EQ(story.links.links_of(PeerId{2}), (std::vector{read_from("b2", 3'000'000'000, 2'000'000)}));
}

TEST(Links, take_what_others_tell_of_their_stores) {
  LinkStory story;
  story.links.take(PeerId{1}, status_with({read_from("my.host", 100, 7)}), 10);
  const std::vector<BoardLink> board = story.board(10);
  ASSERT_EQ(board.size(), 1U);
  EXPECT_EQ(board[0].requests, 7U);
  EXPECT_FALSE(board[0].requests_usd) << "no price is known";
  EXPECT_FALSE(board[0].usd_per_gb) << "nor one of its bytes";
}

TEST(Links, to_a_store_are_beside_those_from_it) {
  LinkStory story;
  const std::vector use{written_to("r2", 1'000'000'000, 2'000'000), read_from("r2", 5, 10)};
  story.links.take(PeerId{1}, status_with(use), 10);
  const std::vector<BoardLink> board = story.board(10);
  ASSERT_EQ(board.size(), 2U);
  const BoardLink& written = board[0].reads_store() ? board[1] : board[0];
  EXPECT_EQ(written.from, kEast);
  EXPECT_EQ(written.to, "r2");
  EXPECT_EQ(written.requests, 2'000'000U);
  EXPECT_DOUBLE_EQ(written.requests_usd.value(), 9);
  EXPECT_DOUBLE_EQ(written.usd, 0.1);
  EXPECT_NEAR(story.links.usd_of(PeerId{1}).bytes, 0.1, 1e-8);
  EXPECT_EQ(story.links.links_of(PeerId{1}), use);
}

TEST(Links, to_a_site_with_the_name_of_a_store_keep_the_requests_of_the_store) {
  LinkStory story;
  story.links.take(PeerId{1}, status_with({written_to("r2", 1'000'000'000, 1'000'000)}), 10);
  story.links.take(PeerId{2}, status_with({{.from = kEast, .to = "r2", .bytes = 2'000'000'000}}), 10);
  const std::vector<BoardLink> board = story.board(10);
  ASSERT_EQ(board.size(), 1U);
  EXPECT_EQ(board[0].store, "r2");
  EXPECT_EQ(board[0].bytes, 3'000'000'000U);
  EXPECT_EQ(board[0].requests_usd, 4.5);
}

TEST(Links, to_a_store_add_up_over_processes) {
  LinkStory story;
  const auto tell = [&](double at_s, std::uint64_t writes) {
    story.links.take(PeerId{1}, status_with({written_to("r2", 9, writes)}), at_s);
  };
  tell(10, 4);
  story.start(1, 11, kEast);
  tell(20, 3);
  EXPECT_EQ(story.links.links_of(PeerId{1}), std::vector{written_to("r2", 18, 7)});
  ASSERT_EQ(story.board(20).size(), 1U) << "nothing was read";
}

TEST(Links, of_unknown_sites_have_no_price) {
  LinkStory story;
  story.start(1, 0, "");
  story.sent(1, 10, kWest, 1e9);
  EXPECT_FALSE(story.board(10)[0].usd_per_gb);
  EXPECT_EQ(story.board(10)[0].usd, 0);
}

TEST(Links, cost_by_the_catalog) {
  EXPECT_EQ(usual_egress_price(kEast, kEast), 0.0);
  EXPECT_GT(usual_egress_price(kEast, kWest).value(), 0.01);
  EXPECT_EQ(usual_egress_price("s3:us-east-1", kWest), usual_egress_price("aws:us-east-1", kWest));
  EXPECT_EQ(usual_egress_price("s3:us-east-1", kEast), 0.0);
  EXPECT_FALSE(usual_egress_price("here", kWest).has_value() && usual_egress_price("", kWest).has_value());
}

TEST(Links, are_bounded_by_the_lines_of_the_peers_that_run) {
  LinkStory story;
  for (const std::uint64_t peer : {1, 2}) story.start(peer, 0, kEast);
  story.start(3, 0, kWest);
  story.sent(1, 20, kWest, 1e9);
  story.peers = {{.peer = PeerId{1}, .site = kEast}, {.peer = PeerId{2}, .site = kEast}};
  story.peers.push_back({.peer = PeerId{3}, .site = kWest});
  const auto line = [&](std::size_t peer, double up_mbit_s, double down_mbit_s) {
    story.peers[peer - 1].up_mbit_s = up_mbit_s;
    story.peers[peer - 1].down_mbit_s = down_mbit_s;
  };
  EXPECT_FALSE(story.board(21)[0].bound_mbit_s) << "no bandwidth is known";
  line(1, 100, 200);
  EXPECT_FALSE(story.board(21)[0].bound_mbit_s) << "that of a peer in the east is not known";
  line(3, 0, 150);
  EXPECT_EQ(story.board(21)[0].bound_mbit_s, 150) << "what the west takes bounds it whatever the east sends";
  line(2, 300, 400);
  EXPECT_EQ(story.board(21)[0].bound_mbit_s, 150) << "what the west takes";
  story.peers[1].state = PeerState::lost;
  EXPECT_EQ(story.board(21)[0].bound_mbit_s, 100) << "what the east sends";
}

}  // namespace
}  // namespace tw::monitor
