// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/tensorboard_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "monitor/board/test_board.h"

namespace tw::cli {
namespace {

TEST(TensorBoardFile, holds_one_run) {
  const std::string folder = testing::TempDir() + "tw-tensorboard-" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  TensorBoardFile boards(folder);
  monitor::Board board = monitor::full_board();
  const auto size_of = [&](double begun_s) {
    return std::filesystem::file_size(folder + "/" + monitor::tensorboard_file_name(begun_s));
  };
  const double begun_s = board.rounds.front().begun_s;
  ASSERT_TRUE(boards.take(board));
  const std::uintmax_t size = size_of(begun_s);
  board.run = "another";
  board.rounds.front().begun_s -= 60;
  ASSERT_TRUE(boards.take(board));
  EXPECT_EQ(size_of(begun_s), size);
  EXPECT_EQ(size_of(begun_s - 60), size);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tw::cli
