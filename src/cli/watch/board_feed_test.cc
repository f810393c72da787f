// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/board_feed.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "monitor/report/test_story.h"
#include "peer/viewer.h"

namespace tw::cli {
namespace {

using world::Phase;

class LogFeed : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The first board of a run with rounds of five minutes, whose newest line is so old. It does four of them,
  /// for 2 USD an hour.
  monitor::Board first_board(double silent_s, Round last_round = 99, const std::string& plan = {}) {
    constexpr double kRound_s = 300;
    constexpr Round kRounds = 4;
    monitor::Story story;
    story.add(1, kRound_s, {.fact = event::Start{.last_round = last_round, .usd_per_h = 2}});
    for (Round round = 1; round <= kRounds; ++round)
      story.round(round, kRound_s * static_cast<double>(round), kRound_s, {1});
    const double end_s = kRound_s * (kRounds + 1) + silent_s;
    const std::int64_t later =
        loop_.unix_nanos() - monitor::kEpochNanos - static_cast<std::int64_t>(end_s * 1e9);
    std::ofstream log(folder_ + "/events-1.jsonl");
    const std::vector<std::vector<monitor::LogEntry>> logs = story.logs();
    for (monitor::LogEntry entry : logs.front()) {
      if (auto* commit = std::get_if<event::Commit>(&entry.event.fact))
        commit->last = entry.event.round == last_round;
      entry.unix_nanos += later;
      log << to_json_line(entry) << "\n";
    }
    log.close();
    auto feed = open_feed({.where = folder_, .plan = plan}, loop_);
    EXPECT_TRUE(feed) << feed.error().message;
    monitor::Board first;
    feed.value()->ask([&](Result<monitor::Board> board) {
      EXPECT_TRUE(board) << board.error().message;
      first = std::move(board).value();
    });
    return first;
  }

  double now_s() { return static_cast<double>(loop_.unix_nanos()) * 1e-9; }

  host::Loop loop_;
  std::string folder_ = testing::TempDir() + "tw-board-feed-" + std::to_string(getpid());
};

TEST_F(LogFeed, of_long_rounds_lives_between_its_lines) {
  const monitor::Board board = first_board(70);
  EXPECT_EQ(board.round, 4U);
  EXPECT_FALSE(board.dead_since_s);
  EXPECT_NEAR(board.now_s, now_s(), 10);
}

TEST_F(LogFeed, of_a_dead_run_stands_still) {
  const monitor::Board board = first_board(5000);
  EXPECT_NEAR(board.dead_since_s.value_or(0), now_s() - 5000, 10);
  EXPECT_NEAR(board.now_s, now_s() - 5000, 10);
}

TEST_F(LogFeed, of_a_complete_run_loses_a_peer_whose_log_has_no_end) {
  const monitor::Board board = first_board(1320, 4);
  EXPECT_TRUE(board.complete);
  EXPECT_NEAR(board.now_s, now_s() - 1320, 10) << "its time stands still";
  ASSERT_EQ(board.peers.size(), 1U);
  EXPECT_EQ(board.peers[0].state, monitor::PeerState::lost);
  EXPECT_EQ(board.peers[0].ended, "its log ends without a stop");
  EXPECT_EQ(board.money.usd_per_h, std::nullopt);
}

TEST_F(LogFeed, of_a_run_that_was_just_complete_waits_for_the_end_of_a_log) {
  const monitor::Board board = first_board(300, 4);
  EXPECT_TRUE(board.complete);
  EXPECT_EQ(board.peers.at(0).state, monitor::PeerState::applying);
  EXPECT_EQ(board.money.usd_per_h, 2);
}

TEST_F(LogFeed, with_a_plan_has_its_price_and_not_that_of_the_logs) {
  const std::string plan = folder_ + "/plan.yaml";
  std::ofstream(plan) << "peers:\n  - {site: \"gcp:us-west1\", gpu: T4, purchase: spot, usd_per_h: 0.5}\n";
  EXPECT_EQ(first_board(70).money.usd_per_h, 2);
  EXPECT_EQ(first_board(70, 99, plan).money.usd_per_h, 0.5);
}

TEST_F(LogFeed, of_a_folder_that_two_runs_used_names_the_logs_that_it_leaves_out) {
  const auto write = [&](std::uint64_t peer, const std::string& run, std::int64_t at_s) {
    std::ofstream log(folder_ + "/" + monitor::event_log_name(PeerId{peer}));
    const auto line = [&](world::Fact fact) {
      log << monitor::to_json_line(
                 {PeerId{peer},
                  monitor::kEpochNanos + at_s * 1'000'000'000,
                  {.at = Instant(std::chrono::seconds(at_s)), .round = 1, .fact = std::move(fact)}})
          << "\n";
    };
    line(event::Start{.digest = run});
    line(event::Commit{});
  };
  write(1, "aa", 1);
  auto feed = open_feed({.where = folder_}, loop_);
  ASSERT_TRUE(feed) << feed.error().message;
  monitor::Board shown;
  const auto ask = [&] {
    feed.value()->ask([&](Result<monitor::Board> board) { shown = std::move(board).value(); });
    return feed.value()->note();
  };
  EXPECT_EQ(ask(), "");
  write(2, "bb", 60);
  EXPECT_EQ(ask(),
            folder_ + ": the logs are of 2 runs; this is the newest, bb; left out: events-1.jsonl of run aa");
  EXPECT_EQ(shown.run, "bb");
  EXPECT_EQ(shown.peers.size(), 1U);
}

TEST_F(LogFeed, shows_no_token) {
  const auto feed = open_feed({.where = folder_, .token = "@observer"}, loop_);
  ASSERT_FALSE(feed);
  EXPECT_EQ(feed.error().message,
            "--token: is shown to https://ADDRESS alone, and " + folder_ + " holds logs; leave it out");
}

TEST_F(LogFeed, with_a_plan_that_cannot_be_read_does_not_begin) {
  const std::string plan = folder_ + "/nothing.yaml";
  EXPECT_EQ(open_feed({.where = folder_, .plan = plan}, loop_).error().message,
            plan + ": cannot be read: No such file or directory");
  EXPECT_EQ(open_feed({.where = "127.0.0.1:8080", .plan = plan}, loop_).error().message,
            "--plan: prices event logs; the peer at 127.0.0.1:8080 knows its own prices; leave it out");
  EXPECT_THAT(open_feed({.where = "nowhere", .plan = plan}, loop_).error().message,
              testing::HasSubstr("nowhere: expected a folder of event logs"));
}

TEST(PeerFeed, knows_a_pin_by_its_form) {
  host::Loop loop;
  const auto complaint = [&](const std::string& where, const std::string& pin) {
    const auto feed = open_feed({.where = where, .pin = pin}, loop);
    return feed ? "" : feed.error().message;
  };
  const std::string pin = "sha256//" + std::string(43, 'a') + "=";
  EXPECT_EQ(complaint("https://10.0.0.5:8443", pin), "");
  for (const std::string& wrong :
       {std::string("nonsense"), std::string("sha256//"), pin + "a", pin.substr(8)})
    EXPECT_EQ(complaint("https://10.0.0.5:8443", wrong),
              "--pin " + wrong +
                  ": expected sha256// and 44 characters, as its peer prints it below its line watch:");
  EXPECT_EQ(complaint("10.0.0.5:8443", pin),
            "--pin: is of the certificate at https://, and http://10.0.0.5:8443 is not; leave it out");
}

TEST(PeerFeed, has_the_last_board_of_a_peer_that_ends) {
  host::Loop loop;
  monitor::Board board{.run = "c0ffee", .round = 7};
  bool showed_end = false;
  auto viewer = peer::Viewer::open(loop, {.address = "127.0.0.1:0"}, [&]() -> Result<monitor::Board> {
    showed_end = board.complete;
    return board;
  });
  ASSERT_TRUE(viewer) << viewer.error().message;
  const auto feed = open_feed({.where = viewer.value()->url()}, loop);
  ASSERT_TRUE(feed) << feed.error().message;
  const auto ask = [&] {
    std::optional<Result<monitor::Board>> shown;
    feed.value()->ask([&](Result<monitor::Board> came) { shown = std::move(came); });
    EXPECT_TRUE(loop.run_until([&] { return shown.has_value(); }, std::chrono::seconds(10)));
    return shown.value_or(Error{"no answer"});
  };
  ASSERT_TRUE(ask());
  board.complete = true;
  ASSERT_TRUE(loop.run_until([&] { return showed_end; }, std::chrono::seconds(10)))
      << "the feed waits for it";
  viewer.value()->say_goodbye();
  viewer.value().reset();
  const auto last = ask();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_TRUE(last.value().complete);
  EXPECT_FALSE(ask()) << "there is no peer any more";
}

TEST(PeerFeed, takes_the_address_of_the_board_for_that_of_its_peer) {
  host::Loop loop;
  for (const char* where : {"127.0.0.1:8080", "http://127.0.0.1:8080/", "http://127.0.0.1:8080/board.json"}) {
    const auto feed = open_feed({.where = where}, loop);
    ASSERT_TRUE(feed) << feed.error().message;
    EXPECT_EQ(feed.value()->name(), "peer at http://127.0.0.1:8080") << where;
  }
}

}  // namespace
}  // namespace tw::cli
