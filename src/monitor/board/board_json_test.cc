// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "monitor/board/test_board.h"

namespace tw::monitor {
namespace {

/// The error that the text of a full board gives, one piece of it replaced.
std::string error_with(const std::string& old, const std::string& now) {
  std::string text = to_json(full_board());
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old << " in " << text;
  if (at != std::string::npos) text.replace(at, old.size(), now);
  const auto board = board_from_json(text);
  return board ? "" : board.error().message;
}

TEST(BoardJson, reads_back_every_member_that_it_wrote) {
  const auto board = board_from_json(to_json(full_board()));
  ASSERT_TRUE(board) << board.error().message;
  EXPECT_EQ(board.value(), full_board());
}

TEST(BoardJson, reads_back_a_board_that_knows_nothing_yet) {
  const auto board = board_from_json(to_json(Board{}));
  ASSERT_TRUE(board) << board.error().message;
  EXPECT_EQ(board.value(), Board{});
}

TEST(BoardJson, is_one_line_with_the_sum_of_the_money) {
  const std::string text = to_json(full_board());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_NE(text.find("\"usd\":0.4375"), std::string::npos) << text;
  EXPECT_NE(to_json(Board{}).find("\"usd\":null"), std::string::npos);
  EXPECT_NE(text.find("\"is_priced\":false"), std::string::npos) << text;
  Board board;
  board.money = {.machine_hours = 10, .priced_hours = 9.999};
  EXPECT_NE(to_json(board).find("\"is_priced\":true"), std::string::npos);
}

TEST(BoardJson, writes_what_is_not_finite_as_null) {
  Board board;
  board.speed.samples_per_s = std::numeric_limits<double>::infinity();
  board.loss = std::nan("");
  const auto again = board_from_json(to_json(board));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again.value().speed.samples_per_s, 0) << "not known";
  EXPECT_EQ(again.value().loss, std::nullopt);
}

TEST(BoardJson, keeps_the_largest_peer_id_and_the_smallest_number) {
  Board board;
  board.peers = {busy_peer()};
  board.peers[0].peer = PeerId{std::numeric_limits<std::uint64_t>::max()};
  board.now_s = std::numeric_limits<double>::denorm_min();
  const auto again = board_from_json(to_json(board));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again.value(), board);
}

TEST(BoardJson, bytes_that_are_no_text_do_not_break_it) {
  Board board;
  board.run = "\xff\xfe";
  EXPECT_TRUE(board_from_json(to_json(board)));
}

TEST(BoardJson, names_the_first_place_that_is_wrong) {
  EXPECT_EQ(error_with("\"samples\":6144,", ""), "board.samples is missing");
  EXPECT_EQ(error_with("\"round\":12", "\"round\":-1"), "board.round: expected a whole number of at least 0");
  EXPECT_EQ(error_with("\"now_s\":1002.0", "\"now_s\":\"now\""), "board.now_s: expected a number or null");
  EXPECT_EQ(error_with("\"complete\":true", "\"complete\":1"), "board.complete: expected true or false");
  EXPECT_EQ(error_with("\"run\":\"c0ffee\"", "\"run\":null"), "board.run: expected a text");
  EXPECT_EQ(error_with("\"ledger\":{", "\"ledger\":3,\"x\":{"), "board.ledger: expected an object");
  EXPECT_EQ(error_with("\"contributors\":[1]", "\"contributors\":1"),
            "board.rounds[0].contributors: expected a list");
  EXPECT_EQ(error_with("\"state\":\"lost\"", "\"state\":\"dead\""),
            "board.peers[1].state: 'dead' is none of starting, computing, averaging, applying, fetching, "
            "leaving, left, lost");
  EXPECT_EQ(error_with("\"run\":", "\"colour\":1,\"run\":"),
            "board.colour: unknown key; it comes from another version of tw");
}

TEST(BoardJson, refuses_what_is_no_json) {
  const auto board = board_from_json("<html>");
  ASSERT_FALSE(board);
  EXPECT_EQ(board.error().message, "no board: 6 bytes that are no JSON");
  EXPECT_FALSE(board_from_json("[]"));
}

}  // namespace
}  // namespace tw::monitor
