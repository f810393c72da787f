// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/followed_logs.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tw::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kBegin_ns = 1'800'000'000'000'000'000;

class Follow : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "tw-follow-" + std::to_string(getpid());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }

  void TearDown() override { std::filesystem::remove_all(folder); }

  void write(const std::string& path, PeerId peer, world::Phase phase, Round round) {
    write(path, peer, world::fact_of(phase), round);
  }

  void write(const std::string& path, PeerId peer, world::Fact fact, Round round) {
    const world::Event event{
        .at = Instant(std::chrono::seconds(++second)), .round = round, .fact = std::move(fact)};
    std::ofstream(folder + "/" + path, std::ios::app)
        << to_json_line({peer, kBegin_ns + second * 1'000'000'000LL, event}) << "\n";
  }

  Result<FollowedLogs> open() {
    return FollowedLogs::open(folder, [this](const std::vector<PeerId>& peers) {
      asked.push_back(peers);
      return JournalOptions{};
    });
  }

  static Status poll(Result<FollowedLogs>& logs) { return logs.value().poll(); }

  static std::size_t peers(const Result<FollowedLogs>& logs) { return logs.value().board(0).peers.size(); }

  std::string folder;
  int second = 0;
  std::vector<std::vector<PeerId>> asked;
};

TEST_F(Follow, takes_what_is_written_and_logs_that_come_later) {
  auto logs = open();
  ASSERT_TRUE(logs) << logs.error().message;
  ASSERT_TRUE(poll(logs));
  EXPECT_EQ(peers(logs), 0U);
  write("events-1.jsonl", PeerId{1}, world::Phase::start, 0);
  ASSERT_TRUE(poll(logs));
  EXPECT_EQ(peers(logs), 1U);
  write("events-1.jsonl", PeerId{1}, world::Phase::accumulate, 1);
  write("events-2.jsonl", PeerId{2}, world::Phase::start, 0);
  ASSERT_TRUE(poll(logs));
  EXPECT_EQ(peers(logs), 2U);
  EXPECT_THAT(asked, ElementsAre(ElementsAre(PeerId{1}), ElementsAre(PeerId{1}, PeerId{2})));
}

TEST_F(Follow, gives_the_board_that_a_journal_gives_of_the_whole_logs) {
  auto logs = open();
  ASSERT_TRUE(logs);
  for (Round round = 1; round <= 3; ++round) {
    for (const PeerId peer : {PeerId{1}, PeerId{2}}) {
      const std::string path = "events-" + to_string(peer) + ".jsonl";
      if (round == 1) write(path, peer, world::Phase::start, 0);
      write(path, peer, world::Phase::accumulate, round);
    }
    ASSERT_TRUE(poll(logs));
  }
  const auto whole = read_event_logs(folder);
  ASSERT_TRUE(whole);
  EXPECT_EQ(logs.value().board(0), journal_of(whole.value()).board(0));
}

TEST_F(Follow, shows_the_newest_run_alone_as_a_report_does) {
  const auto begin = [&](std::uint64_t peer, const std::string& run, Round round) {
    const std::string path = event_log_name(PeerId{peer});
    write(path, PeerId{peer}, event::Start{.digest = run}, 0);
    write(path, PeerId{peer}, event::Accumulate{}, round);
  };
  begin(1, "aa", 9);
  auto logs = open();
  ASSERT_TRUE(logs && poll(logs));
  EXPECT_EQ(logs.value().board(0).run, "aa");
  EXPECT_EQ(logs.value().left_out(), "");
  begin(2, "bb", 1);
  begin(3, "bb", 1);
  ASSERT_TRUE(poll(logs));
  EXPECT_EQ(peers(logs), 2U);
  EXPECT_THAT(asked.back(), ElementsAre(PeerId{2}, PeerId{3}));
  const auto whole = read_newest_run(folder);
  ASSERT_TRUE(whole);
  EXPECT_EQ(logs.value().board(0), journal_of(whole.value().logs).board(0));
  EXPECT_EQ(logs.value().left_out(), whole.value().left_out);
  EXPECT_THAT(logs.value().left_out(), HasSubstr("left out: events-1.jsonl of run aa"));
}

TEST_F(Follow, goes_on_with_all_lines_once_a_broken_one_was_mended) {
  write("events-1.jsonl", PeerId{1}, world::Phase::start, 0);
  std::ofstream(folder + "/events-2.jsonl") << "{}\n";
  auto logs = open();
  ASSERT_TRUE(logs);
  for (int again = 0; again < 3; ++again) {
    const Status polled = poll(logs);
    ASSERT_FALSE(polled);
    EXPECT_THAT(polled.error().message, HasSubstr("events-2.jsonl:1: "));
  }
  std::filesystem::remove(folder + "/events-2.jsonl");
  write("events-2.jsonl", PeerId{2}, world::Phase::start, 0);
  ASSERT_TRUE(poll(logs));
  EXPECT_EQ(peers(logs), 2U);
}

TEST_F(Follow, reads_no_log_again_before_a_line_with_a_broken_end_was_mended) {
  write("events-1.jsonl", PeerId{1}, world::Phase::start, 0);
  const std::string path = folder + "/events-2.jsonl";
  write("events-2.jsonl", PeerId{2}, event::Commit{}, 1);
  std::string line;
  std::getline(std::ifstream(path), line);
  std::ofstream(path) << line.substr(0, line.rfind('}')) << ", \"samples\": []}\n";
  auto logs = open();
  ASSERT_TRUE(logs);
  for (int again = 0; again < 3; ++again) {
    const Status polled = poll(logs);
    ASSERT_FALSE(polled);
    EXPECT_THAT(polled.error().message, HasSubstr("events-2.jsonl:1: "));
    write("events-1.jsonl", PeerId{1}, world::Phase::accumulate, 1);
  }
  EXPECT_EQ(asked.size(), 1U);
  std::ofstream(path) << line << "\n";
  ASSERT_TRUE(poll(logs));
  EXPECT_EQ(asked.size(), 2U);
  EXPECT_EQ(peers(logs), 2U);
}

TEST_F(Follow, finds_the_logs_of_a_folder_of_tw_up) {
  std::filesystem::create_directories(folder + "/logs");
  write("logs/events-1.jsonl", PeerId{1}, world::Phase::start, 0);
  auto logs = open();
  ASSERT_TRUE(logs && poll(logs));
  EXPECT_EQ(peers(logs), 1U);
}

TEST_F(Follow, names_a_folder_that_is_none_and_a_line_that_is_broken) {
  const auto none = FollowedLogs::open(folder + "/none", {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("/none: no such folder; expected one with event logs"));
  std::ofstream(folder + "/events-1.jsonl") << "{}\n";
  auto logs = open();
  ASSERT_TRUE(logs);
  const Status polled = poll(logs);
  ASSERT_FALSE(polled);
  EXPECT_THAT(polled.error().message, HasSubstr("events-1.jsonl:1"));
}

}  // namespace
}  // namespace tw::monitor
