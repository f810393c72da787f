// SPDX-License-Identifier: Apache-2.0
#include "monitor/export/board_csv.h"

#include <gtest/gtest.h>

#include "base/text/csv.h"
#include "monitor/board/test_board.h"

namespace tw::monitor {
namespace {

CsvTable table_of(const std::string& text, const std::vector<std::string>& columns) {
  auto table = CsvTable::parse("board", text, columns);
  EXPECT_TRUE(table.ok());
  return std::move(table).value();
}

TEST(BoardCsv, has_a_line_for_each_round) {
  Board board = full_board();
  board.rounds = {{.round = 7, .begun_s = 1000.25}};
  board.rounds[0].contributors = {PeerId{1}, PeerId{3}};
  board.rounds[0].left_out = {{PeerId{2}, "slow, \"very\""}};
  board.rounds[0].samples = 256;
  const CsvTable table = table_of(rounds_csv(board), {"round", "committed_unix_s"});
  ASSERT_EQ(table.size(), 1U);
  CsvRow row = table.row(0);
  EXPECT_EQ(row.count("round"), 7);
  EXPECT_EQ(row.number("begun_unix_s"), 1000.25);
  EXPECT_TRUE(row.empty("committed_unix_s"));
  EXPECT_TRUE(row.empty("calc_s"));
  EXPECT_EQ(row.text("contributors"), "1 3");
  EXPECT_EQ(row.text("left_out"), "2: slow, \"very\"");
  EXPECT_EQ(row.count("samples"), 256);
}

TEST(BoardCsv, has_a_line_for_each_peer) {
  Board board;
  board.peers = {busy_peer(), lost_peer()};
  const CsvTable table = table_of(peers_csv(board), {"peer"});
  ASSERT_EQ(table.size(), 2U);
  CsvRow busy = table.row(0), lost = table.row(1);
  EXPECT_EQ(busy.text("state"), "averaging");
  EXPECT_EQ(busy.number("peak_memory_bytes"), 1 << 30);
  EXPECT_EQ(busy.number("gpu_busy"), 0.93);
  EXPECT_EQ(busy.number("gpu_memory_bytes"), 12e9);
  EXPECT_TRUE(lost.empty("gpu_busy"));
  EXPECT_EQ(busy.number("usd_per_h"), 0.15);
  EXPECT_EQ(busy.count("anchor"), 1);
  EXPECT_EQ(lost.text("state"), "lost");
  EXPECT_TRUE(lost.empty("usd_per_h"));
  EXPECT_EQ(lost.text("ended"), "silent for 2.25 s");
}

TEST(BoardCsv, has_a_line_for_each_evaluation) {
  const CsvTable table = table_of(evaluations_csv(full_board()), {"round", "name", "value", "peer"});
  ASSERT_EQ(table.size(), 1U);
  CsvRow row = table.row(0);
  EXPECT_EQ(row.count("round"), 12);
  EXPECT_EQ(row.text("name"), "accuracy");
  EXPECT_EQ(row.number("value"), 0.75);
  EXPECT_EQ(row.count("peer"), 1);
  EXPECT_EQ(row.number("at_unix_s"), 1001);
}

TEST(BoardCsv, has_interruptions_and_links) {
  Board board;
  board.interruptions = {{Interruption::Kind::handed_over, 1000.5, 12, PeerId{3}, "to peer 1"}};
  board.links = {{"aws:a", "gcp:b", 1'000'000, 80.5, std::nullopt, 0.02, 0.5}};
  const CsvTable interruptions = table_of(interruptions_csv(board), {"kind"});
  CsvRow event = interruptions.row(0);
  EXPECT_EQ(event.text("kind"), "handed_over");
  EXPECT_EQ(event.count("peer"), 3);
  EXPECT_EQ(event.number("at_unix_s"), 1000.5);
  const CsvTable links = table_of(links_csv(board), {"from"});
  CsvRow link = links.row(0);
  EXPECT_EQ(link.text("to"), "gcp:b");
  EXPECT_EQ(link.number("bytes"), 1e6);
  EXPECT_TRUE(link.empty("bound_mbit_s"));
  EXPECT_EQ(link.number("tariff_usd_per_gb"), 0.02);
  EXPECT_EQ(link.number("cost_usd"), 0.5);
}

TEST(BoardCsv, of_nothing_has_its_headers) {
  for (const std::string& text : {rounds_csv({}), peers_csv({}), interruptions_csv({}), links_csv({})})
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

}  // namespace
}  // namespace tw::monitor
