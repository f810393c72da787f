// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/past_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "monitor/logs/event_log_json.h"
#include "monitor/logs/log_file.h"

namespace tw::monitor {
namespace {

class PastRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tw-past-" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  void log(std::uint64_t peer, const world::Event& event) {
    std::ofstream file(path(peer), std::ios::app);
    file << to_json_line({PeerId{peer}, unix_nanos_, event}) << '\n';
  }

  void starts(std::uint64_t peer, const std::string& run) {
    log(peer, {.fact = event::Start{.digest = run}});
  }

  void commits(std::uint64_t peer, Round round, bool last = false) {
    log(peer, {.round = round, .fact = event::Commit{.last = last}});
  }

  UnfinishedRun found() const { return unfinished_run(folder_, "aa").value_or(UnfinishedRun{}); }

  std::string path(std::uint64_t peer) const { return folder_ + "/" + event_log_name(PeerId{peer}); }

  std::string folder_;
  std::int64_t unix_nanos_ = 1'700'000'000'000'000'000;
};

TEST_F(PastRun, begun_when_a_log_of_it_holds_a_round) {
  EXPECT_FALSE(unfinished_run(folder_ + "/none", "aa"));
  EXPECT_FALSE(unfinished_run(folder_, "aa"));
  starts(2, "aa");
  EXPECT_FALSE(unfinished_run(folder_, "aa")) << "it waits for the history to begin";
  commits(2, 1);
  EXPECT_EQ(path(2), found().log);
}

TEST_F(PastRun, is_over_when_a_later_part_of_its_log_holds_the_last_round) {
  starts(2, "aa");
  commits(2, 1);
  const world::Event last{.at = {}, .round = 9, .fact = event::Commit{.last = true}};
  std::ofstream(log_part_path(path(2), 2))
      << to_json_line({PeerId{2}, 1'700'000'000'000'000'000, last}) << '\n';
  EXPECT_FALSE(unfinished_run(folder_, "aa"));
}

TEST_F(PastRun, of_another_run_says_nothing) {
  starts(2, "bb");
  commits(2, 1);
  starts(3, "");
  commits(3, 1);
  EXPECT_FALSE(unfinished_run(folder_, "aa"));
}

TEST_F(PastRun, of_a_run_that_came_to_its_end_says_nothing) {
  starts(2, "aa");
  commits(2, 1);
  starts(3, "aa");
  commits(3, 2, true);
  EXPECT_FALSE(unfinished_run(folder_, "aa"));
  starts(3, "aa");
  commits(3, 1);
  EXPECT_EQ(path(2), found().log) << "it was begun once more";
  EXPECT_EQ(1U, found().rounds);
}

TEST_F(PastRun, begun_after_another_one_was_complete_counts) {
  starts(2, "aa");
  commits(2, 9, true);
  unix_nanos_ += 1'000'000'000;
  starts(3, "aa");
  EXPECT_FALSE(unfinished_run(folder_, "aa"));
  commits(3, 4);
  EXPECT_EQ(path(3), found().log);
  EXPECT_EQ(4U, found().rounds);
}

TEST_F(PastRun, survives_lines_that_nobody_can_read) {
  starts(2, "aa");
  std::ofstream(path(2), std::ios::app) << "{\"phase\":\"start\n\"commit\"\n";
  commits(2, 1);
  std::ofstream(path(2), std::ios::app) << "{\"phase\":\"comm";
  EXPECT_EQ(path(2), found().log);
}

}  // namespace
}  // namespace tw::monitor
