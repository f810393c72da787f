// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/money.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

/// Two peers of 3 and 1 hours; eleven rounds, each a minute longer than the one before.
Board usual() {
  Board board;
  board.peers.push_back(
      {.peer = PeerId{1}, .state = PeerState::computing, .usage = {.hours = 3}, .usd_per_h = 2});
  board.peers.push_back({.peer = PeerId{2}, .state = PeerState::left, .usage = {.hours = 1}, .usd_per_h = 4});
  board.links.push_back({.from = "a", .to = "b", .bytes = 5'000'000'000, .usd_per_gb = 0.1, .usd = 0.5});
  double at_s = 1000;
  for (Round round = 1; round <= 12; ++round) {
    at_s += 60.0 * static_cast<double>(round);
    board.rounds.push_back({.round = round, .committed_s = at_s});
  }
  board.round = 12;
  board.samples = 1'050'000;
  return board;
}

TEST(Money, adds_machines_and_traffic) {
  const Money money = money_of(usual(), {}, 100);
  EXPECT_EQ(money.machine_hours, 4);
  EXPECT_EQ(money.priced_hours, 4);
  EXPECT_EQ(money.machines_usd, 10);
  EXPECT_EQ(money.egress_usd, 0.5);
  EXPECT_EQ(money.usd(), 10.5);
  EXPECT_EQ(money.usd_per_h, 2) << "of the peer that runs";
  EXPECT_DOUBLE_EQ(money.usd_per_million.value(), 10);
  EXPECT_EQ(money.budget_usd, 100);
  EXPECT_FALSE(money.forecast) << "the run has no last round";
}

TEST(Money, does_not_make_up_prices) {
  Board board = usual();
  board.peers[0].usd_per_h.reset();
  Money money = money_of(board, {}, {});
  EXPECT_EQ(money.priced_hours, 1);
  EXPECT_EQ(money.machines_usd, 4);
  EXPECT_FALSE(money.usd_per_h);
  board.peers[1].usd_per_h.reset();
  money = money_of(board, {}, {});
  EXPECT_FALSE(money.usd());
  EXPECT_FALSE(money.usd_per_million);
}

TEST(Money, takes_no_part_of_a_cost_for_the_whole) {
  Board board = usual();
  board.last_round = 22;
  ASSERT_TRUE(money_of(board, {}, {}).forecast);
  board.peers[1].usd_per_h.reset();  // it has left: what the run costs an hour now is known
  Money money = money_of(board, {}, {});
  EXPECT_EQ(money.usd(), 6.5);
  EXPECT_EQ(money.usd_per_h, 2);
  EXPECT_FALSE(money.usd_per_million || money.forecast || money.is_priced());
  board.peers[1].state = PeerState::computing;
  EXPECT_FALSE(money_of(board, {}, {}).usd_per_h);
  board.complete = true;
  EXPECT_FALSE(money_of(board, {}, {}).forecast);
}

TEST(Money, for_a_million_samples_is_unknown_where_a_contributor_has_no_log) {
  Board board = usual();
  for (BoardPeer& peer : board.peers) peer.heard_s = 1000;
  for (BoardRound& round : board.rounds) round.contributors = {PeerId{1}, PeerId{2}};
  EXPECT_TRUE(money_of(board, {}, {}).usd_per_million);
  board.rounds[3].contributors = {PeerId{1}, PeerId{2}, PeerId{3}};
  EXPECT_FALSE(money_of(board, {}, {}).usd_per_million);
  board.peers.push_back({.peer = PeerId{3}, .state = PeerState::left});
  EXPECT_FALSE(money_of(board, {}, {}).usd_per_million) << "others name it, and nothing was heard of it";
  board.peers.back().heard_s = 1000;
  EXPECT_TRUE(money_of(board, {}, {}).usd_per_million);
}

TEST(Money, of_traffic_is_unknown_where_none_of_it_has_a_price) {
  Board board = usual();
  EXPECT_EQ(money_of(Board{}, {}, {}).egress_usd, 0) << "no traffic costs nothing";
  board.links = {{.from = "a", .to = "b", .bytes = 5}};
  EXPECT_EQ(money_of(board, {}, {}).egress_usd, std::nullopt);
  EXPECT_EQ(money_of(board, {}, {}).usd(), 10) << "that of the machines";
  board.links.push_back({.from = "b", .to = "a", .bytes = 5, .usd_per_gb = 0.1, .usd = 0.5});
  EXPECT_EQ(money_of(board, {}, {}).egress_usd, 0.5);
}

TEST(Money, forecasts_by_the_spread_of_the_last_rounds) {
  Board board = usual();
  board.last_round = 22;
  const Money money = money_of(board, {}, {});
  // Durations are 120 to 720 s; their tenth, middle and ninetieth are 180, 420 and 660 s.
  EXPECT_DOUBLE_EQ(money.left_s.value(), 4200);
  ASSERT_TRUE(money.forecast);
  EXPECT_DOUBLE_EQ(money.forecast->low, 10.5 + 2 * 1800 / 3600.0);
  EXPECT_DOUBLE_EQ(money.forecast->likely, 10.5 + 2 * 4200 / 3600.0);
  EXPECT_DOUBLE_EQ(money.forecast->high, 10.5 + 2 * 6600 / 3600.0);
}

TEST(Money, of_a_complete_run_is_what_it_has_cost) {
  Board board = usual();
  board.last_round = 12;
  board.complete = true;
  const Money money = money_of(board, {}, {});
  EXPECT_EQ(money.left_s, 0);
  EXPECT_EQ(money.forecast, (UsdRange{10.5, 10.5, 10.5}));
}

TEST(Money, counts_traffic_of_now_into_the_hourly_price) {
  Board board = usual();
  board.links[0].mbit_s = 8;  // 3.6 GB an hour
  EXPECT_DOUBLE_EQ(money_of(board, {}, {}).usd_per_h.value(), 2.36);
}

TEST(Money, takes_a_burst_of_copies_for_no_hourly_price) {
  Board board = usual();
  const double before = money_of(board, {}, {}).usd_per_h.value();
  board.links.push_back({.from = "a", .to = "r2", .mbit_s = 800, .usd_per_gb = 0.1, .usd = 3, .store = "r2"});
  const Money money = money_of(board, {}, {});
  EXPECT_DOUBLE_EQ(money.usd_per_h.value(), before);
  EXPECT_DOUBLE_EQ(money.egress_usd.value(), money_of(usual(), {}, {}).egress_usd.value() + 3);
}

TEST(Money, adds_what_others_told_of_those_that_are_gone) {
  const Money money =
      money_of(usual(), {.hours = 2, .priced_hours = 1, .machines_usd = 7, .egress_usd = 1}, {});
  EXPECT_EQ(money.machine_hours, 6);
  EXPECT_EQ(money.priced_hours, 5);
  EXPECT_EQ(money.usd(), 18.5);
}

}  // namespace
}  // namespace tw::monitor
