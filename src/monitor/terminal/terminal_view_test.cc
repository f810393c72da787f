// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/terminal_view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text/columns.h"
#include "monitor/board/test_board.h"

namespace tw::monitor {
namespace {

constexpr double kShownNow = 1'767'225'600 + 14 * 3600;

/// What a person sees, as files in tests/golden/top.
void expect_golden(const std::string& name, const std::vector<std::string>& found) {
  std::string text;
  for (const std::string& line : found) text += line + "\n";
  const std::string path = std::string(TW_SOURCE_DIR) + "/tests/golden/top/" + name + ".txt";
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  if (golden == text) return;
  const std::string other = ::testing::TempDir() + "golden/top/" + name + ".txt";
  std::filesystem::create_directories(std::filesystem::path(other).parent_path());
  std::ofstream(other) << text;
  ADD_FAILURE() << "not what " << path << " holds; if the change is wanted: cp " << other << " " << path;
}

BoardPeer peer_of(std::uint64_t id, const std::string& site, PeerState state) {
  BoardPeer peer{.peer = PeerId{id}, .site = site, .hardware = "n1-standard-8 with a T4", .state = state};
  peer.since_s = kShownNow - 2;
  peer.heard_s = kShownNow - 1;
  peer.round = 119;
  peer.samples = 377'600 + id;
  peer.samples_per_s = 103.2 + static_cast<double>(id);
  peer.usage = {.hours = 1.5,
                .cpu_s = 7200,
                .peak_memory = 3'200'000'000,
                .bytes_sent = 12'345'678'901,
                .bytes_received = 9'876'543'210};
  peer.usd_per_h = 0.18;
  return peer;
}

/// Four peers of two sites: one waits for another, which has a notice, and one is lost.
Board busy_run() {
  Board board;
  board.run = "3fa2b1c09d8e7f60";
  board.now_s = kShownNow;
  board.round = 118;
  board.last_round = 200;
  board.samples = 1'510'400;
  board.speed = {.samples_per_s = 412.3, .goodput = 0.934, .granularity = 4.21};
  board.loss = 2.3140;
  board.identical = true;
  board.peers = {
      peer_of(1, "gcp:us-west1:a", PeerState::averaging), peer_of(2, "gcp:us-west1:a", PeerState::leaving),
      peer_of(3, "aws:eu-central-1:b", PeerState::lost), peer_of(4, "onprem:zürich", PeerState::computing)};
  board.peers[0].wait =
      BoardWait{"waiting for peer 2: gradients of leased microbatches", kShownNow - 12, {PeerId{2}}};
  board.peers[1].notice = BoardNotice{"gcp", "preempt", kShownNow - 6, kShownNow + 24};
  board.peers[2].ended = "silent for 2.0 s";
  board.peers[0].gpu = BoardGpu{.busy = 0.934, .memory = 11'200'000'000, .memory_total = 15'800'000'000};
  board.peers[3].anchor = true;
  board.peers[3].usd_per_h.reset();
  for (Round number = 107; number <= 118; ++number) {
    BoardRound round{.round = number, .begun_s = kShownNow - 200, .called_s = kShownNow - 190};
    round.committed_s = kShownNow - 189;
    round.calc_s = 9.5;
    round.comm_s = 2.25;
    round.bound_share = 0.91;
    round.samples = 12'800;
    round.contributors = {PeerId{1}, PeerId{2}, PeerId{3}, PeerId{4}};
    round.loss = 2.4;
    board.rounds.push_back(round);
  }
  board.rounds.back().contributors.pop_back();
  board.rounds.back().left_out = {{PeerId{3}, "no progress for 4.1 s"}};
  board.links = {{"aws:eu-central-1:b", "gcp:us-west1:a", 9'000'000'000, 310.4, 400, 0.02, 0.18},
                 {"gcp:us-west1:a", "aws:eu-central-1:b", 8'000'000'000, 390.7, 400, 0.12, 0.96}};
  board.interruptions = {{Interruption::Kind::joined, kShownNow - 3000, 12, PeerId{4}, ""},
                         {Interruption::Kind::lost, kShownNow - 2, 118, PeerId{3}, "silent for 2.0 s"},
                         {Interruption::Kind::notice, kShownNow - 6, 119, PeerId{2}, "gcp preempt in 30 s"}};
  board.money = {.machine_hours = 6, .priced_hours = 6, .machines_usd = 0.81, .egress_usd = 1.14};
  board.money.usd_per_h = 0.92;
  board.money.usd_per_million = 1.29;
  board.money.forecast = UsdRange{2.9, 3.1, 3.6};
  board.money.left_s = 4980;
  board.money.budget_usd = 2.4;
  return board;
}

Board many_peers(std::uint64_t count) {
  Board board = busy_run();
  board.peers.clear();
  for (std::uint64_t id = 1; id <= count; ++id)
    board.peers.push_back(peer_of(id, id % 2 == 0 ? "gcp:us-west1:a" : "aws:eu-central-1:b",
                                  id % 8 == 0 ? PeerState::lost : PeerState::computing));
  return board;
}

std::vector<std::string> shown(const Board& board, std::size_t width, std::size_t height) {
  return lines(board, {.width = width, .height = height});
}

TEST(TerminalView, of_a_busy_run_is_as_wanted) {
  expect_golden("busy-80x24", shown(busy_run(), 80, 24));
  expect_golden("busy-200x50", shown(busy_run(), 200, 50));
}

TEST(TerminalView, of_a_run_that_reads_from_stores_shows_requests_and_their_price) {
  Board board = busy_run();
  for (const std::string& row : shown(board, 120, 60)) EXPECT_EQ(row.find("REQUESTS"), std::string::npos);
  board.links.push_back({.from = "s3:us-east-1",
                         .to = "gcp:us-west1:a",
                         .bytes = 2'000'000'000,
                         .usd_per_gb = 0.09,
                         .usd = 0.18,
                         .store = "s3:us-east-1",
                         .requests = 1'250'000,
                         .requests_usd = 0.5});
  board.links.push_back(
      {.from = "my.host", .to = "gcp:us-west1:a", .bytes = 7, .store = "my.host", .requests = 3});
  std::string rows;
  for (const std::string& row : shown(board, 120, 60))
    if (row.find("s3:") == 0 || row.find("my.host") == 0 || row.find("REQUESTS") != std::string::npos)
      rows += row + "\n";
  EXPECT_NE(rows.find("REQUESTS"), std::string::npos);
  EXPECT_NE(rows.find(" 1,250,000"), std::string::npos) << rows;
  EXPECT_NE(rows.find("$0.68"), std::string::npos) << rows;
  EXPECT_NE(rows.find(" 3         -"), std::string::npos) << rows;
}

TEST(TerminalView, of_64_peers_counts_those_without_room) {
  expect_golden("many-80x24", shown(many_peers(64), 80, 24));
  expect_golden("many-200x50", shown(many_peers(64), 200, 50));
}

TEST(TerminalView, of_a_run_without_prices_says_so) {
  Board board = busy_run();
  board.money = {.machine_hours = 6};
  for (BoardPeer& peer : board.peers) peer.usd_per_h.reset();
  expect_golden("no-prices-80x24", shown(board, 80, 24));
}

TEST(TerminalView, says_of_how_many_hours_the_price_is_known) {
  Board board = busy_run();
  const auto says = [&](const char* words) {
    return std::ranges::any_of(shown(board, 200, 50),
                               [&](const std::string& line) { return line.find(words) != line.npos; });
  };
  EXPECT_FALSE(says("no price is known"));
  board.money.priced_hours = 2;
  EXPECT_TRUE(says("$1.95 so far  for 33 % of the hours: of the others no price is known"));
}

TEST(TerminalView, of_lost_peers_shows_why_each_is_lost) {
  Board board = busy_run();
  board.money.budget_usd = 1;
  board.identical = false;
  for (BoardPeer& peer : board.peers) {
    peer.state = PeerState::lost;
    peer.ended = "no link: connection refused";
    peer.wait.reset();
  }
  expect_golden("lost-80x24", shown(board, 80, 24));
}

TEST(TerminalView, says_since_when_a_peer_trains_alone) {
  Board board = busy_run();
  board.peers[3].ended = "alone since round 112";
  const std::vector<std::string> rows = shown(board, 200, 50);
  EXPECT_TRUE(std::ranges::any_of(
      rows, [](const std::string& row) { return row.find("alone since round 112") != row.npos; }));
}

TEST(TerminalView, before_the_first_round_and_before_anything_is_known) {
  Board board;
  expect_golden("nothing-80x24", shown(board, 80, 24));
  board.now_s = kShownNow;
  board.run = "3fa2b1c09d8e7f60";
  board.peers = {peer_of(1, "", PeerState::starting), peer_of(2, "", PeerState::fetching)};
  for (BoardPeer& peer : board.peers) peer.samples_per_s = 0;
  expect_golden("begin-80x24", shown(board, 80, 24));
}

TEST(TerminalView, of_a_complete_run) {
  Board board = busy_run();
  board.complete = true;
  board.round = 200;
  for (BoardPeer& peer : board.peers) {
    peer.state = PeerState::left;
    peer.notice.reset();
    peer.wait.reset();
  }
  expect_golden("complete-80x24", shown(board, 80, 24));
}

TEST(TerminalView, says_why_a_run_is_over_short_of_its_goal) {
  Board board = busy_run();
  board.ended = "its budget is spent";
  const std::vector<std::string> found = shown(board, 80, 24);
  const auto has = [&](std::string_view words) {
    return std::ranges::any_of(found, [&](const std::string& line) { return line.find(words) != line.npos; });
  };
  EXPECT_TRUE(has("over: its budget is spent"));
  EXPECT_FALSE(has("to go"));
}

TEST(TerminalView, with_colours_has_the_same_words) {
  const auto plain = shown(busy_run(), 80, 24);
  const auto coloured = lines(busy_run(), {.colour = true});
  ASSERT_EQ(plain.size(), coloured.size());
  bool any = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    std::string words = coloured[i];
    for (std::size_t at; (at = words.find('\x1b')) != std::string::npos; any = true)
      words.erase(at, words.find('m', at) - at + 1);
    EXPECT_EQ(words, plain[i]);
  }
  EXPECT_TRUE(any);
}

TEST(TerminalView, stays_within_every_size) {
  for (const Board& board : {Board{}, busy_run(), many_peers(64), many_peers(1)})
    for (std::size_t width : {0, 1, 7, 40, 80, 120, 300})
      for (std::size_t height : {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 24, 37, 100}) {
        const auto text = shown(board, width, height);
        ASSERT_LE(text.size(), height);
        for (const std::string& line : text) ASSERT_LE(columns_of(line), width) << line;
      }
}

TEST(TerminalView, shows_all_peers_where_there_is_room) {
  const auto text = shown(many_peers(64), 80, 200);
  for (const std::string& line : text) EXPECT_EQ(line.find("more peer"), std::string::npos) << line;
  EXPECT_EQ(peers_shown(many_peers(64), {.height = 200}), 64U);
}

TEST(TerminalView, scrolls_to_its_last_peer_and_no_further) {
  const Board board = many_peers(64);
  const TerminalView view{.first_peer = 1000};
  const std::size_t rows = peers_shown(board, view);
  std::size_t last = 0;
  for (const std::string& line : lines(board, view)) last += line.starts_with("  64 ") ? 1 : 0;
  EXPECT_EQ(last, 1U);
  const auto end = lines(board, {.first_peer = 64 - rows});
  EXPECT_EQ(lines(board, view), end);
}

TEST(TerminalView, orders_peers_as_asked) {
  Board board = busy_run();
  const auto first_of = [&](PeerOrder order) {
    for (const std::string& line : lines(board, {.order = order}))
      if (line.find("us-west1") != std::string::npos || line.find("eu-central") != std::string::npos ||
          line.find("zürich") != std::string::npos)
        return line.substr(0, 4);
    return std::string();
  };
  EXPECT_EQ(first_of(PeerOrder::id), "   1");
  EXPECT_EQ(first_of(PeerOrder::state), "   3");
  EXPECT_EQ(first_of(PeerOrder::speed), "   4");
  board.peers[1].usd_per_h = 2;
  EXPECT_EQ(first_of(PeerOrder::usd), "   2");
}

TEST(TerminalView, of_one_site_has_no_links) {
  Board board = full_board();
  const auto shows = [&](const char* part) {
    for (const std::string& line : lines(board, {.width = 100, .height = 50}))
      if (line.find(part) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(shows("MBIT/S"));
  for (BoardLink& link : board.links) link.to = link.from;
  EXPECT_FALSE(shows("MBIT/S"));
}

TEST(TerminalView, names_what_delays_a_run_and_the_remedy) {
  Board board = full_board();
  board.complete = false;
  board.ended.clear();
  board.dead_since_s.reset();
  std::string text;
  for (const std::string& line : lines(board, {.width = 200, .height = 50})) text += line + '\n';
  EXPECT_NE(
      text.find("the link between peer 2 and peer 1 costs 0.5 s a round (25 %, $0.0750/h) since 00:16:20: "
                "replace it by a machine elsewhere"),
      std::string::npos)
      << text;
}

TEST(TerminalView, of_a_dead_run_says_since_when_and_has_no_speed) {
  Board board = full_board();
  board.complete = false;
  board.ended.clear();
  board.is_dead_since(1001);
  std::string text;
  for (const std::string& line : lines(board, {.width = 200, .height = 50})) text += line + '\n';
  EXPECT_NE(text.find("DEAD since 1970-01-01 00:16:41 UTC: start it again"), std::string::npos) << text;
  EXPECT_EQ(text.find("to go"), std::string::npos) << text;
  EXPECT_EQ(text.find("costs"), std::string::npos) << "nobody delays it any more: " << text;
}

}  // namespace
}  // namespace tw::monitor
