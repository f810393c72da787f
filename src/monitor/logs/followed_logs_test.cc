// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/followed_logs.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "monitor/logs/test_logs.h"

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
    write(path, peer, {.round = round, .fact = std::move(fact)});
  }

  void write(const std::string& path, PeerId peer, world::Event event) {
    event.at = Instant(std::chrono::seconds(++second));
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
  const auto whole = LogFollower::of_whole_logs(folder);
  ASSERT_TRUE(whole);
  const HeldHistory history = HeldHistory::of(whole.value()).value();
  EXPECT_EQ(logs.value().board(0), journal_of(whole.value(), history).value().board(0));
  EXPECT_EQ(logs.value().left_out(), whole.value().left_out());
  EXPECT_THAT(logs.value().left_out(), HasSubstr("left out: events-1.jsonl of run aa"));
}

/// Two peers that do 32 samples each in a round; after round 3 each goes on by itself, with 64.
class Parted : public Follow {
 protected:
  void SetUp() override {
    Follow::SetUp();
    for (const std::uint64_t peer : {1, 2}) tell(peer, {.fact = event::Start{}});
    for (Round round = 1; round <= 3; ++round)
      for (const std::uint64_t peer : {1, 2}) decide(peer, round, "a", 2);
    tell(1, {.round = 4, .peer = PeerId{2}, .why = "silent", .fact = event::Lost{}});
    tell(2, {.round = 4, .peer = PeerId{1}, .why = "silent", .fact = event::Lost{}});
    for (Round round = 4; round <= 6; ++round) decide(1, round, "a", 1);
    decide_alone(4, 8);
  }

  void tell(std::uint64_t peer, world::Event event) {
    write(event_log_name(PeerId{peer}), PeerId{peer}, std::move(event));
  }

  void decide(std::uint64_t peer, Round round, const std::string& history, std::uint64_t members) {
    const bool is_first_alone = history != "a" && round == 4;
    const std::string record = history + std::to_string(round);
    tell(peer, {.round = round, .fact = event::Accumulate{}});
    tell(peer, {.round = round,
                .fact = event::Commit{.digest = record,
                                      .cause = is_first_alone ? event::Cause::minority : event::Cause::none,
                                      .parent = (is_first_alone ? "a" : history) + std::to_string(round - 1),
                                      .samples = 64 / members,
                                      .samples_total = 64 * round,
                                      .majority_samples = 64 * (history == "a" ? round : 3),
                                      .members = members}});
    tell(peer, {.round = round, .fact = event::Apply{.digest = "of " + record, .record = record}});
  }

  void decide_alone(Round first, Round last) {
    for (Round round = first; round <= last; ++round) decide(2, round, "b", 1);
  }

  void meet() {
    tell(2, {.round = 9, .fact = event::Restore{}});
    tell(2, {.round = 6, .fact = event::Restore{.digest = "of a6", .record = "a6"}});
    for (const std::uint64_t peer : {1, 2}) decide(peer, 7, "a", 2);
  }

  /// As a report has it of the logs so far.
  Board whole() const { return journal_of(read_event_logs(folder).value()).board(0); }
};

std::uint64_t samples_of_peers(const Board& board) {
  std::uint64_t sum = 0;
  for (const BoardPeer& peer : board.peers) sum += peer.samples;
  return sum;
}

TEST_F(Parted, show_the_history_that_the_run_holds_and_who_is_apart) {
  auto logs = open();
  for (const bool goes_on : {false, true}) {
    if (goes_on) decide_alone(9, 9);
    ASSERT_TRUE(logs && poll(logs));
    const Board board = logs.value().board(0);
    EXPECT_EQ(board.round, 6U);
    EXPECT_EQ(board.peers[0].state, PeerState::applying);
    EXPECT_EQ(board.peers[1].state, PeerState::lost);
    EXPECT_EQ(board.peers[1].ended, "silent; apart from the others since round 4");
    EXPECT_FALSE(board.identical) << "two histories";
    EXPECT_EQ(samples_of_peers(board), board.samples);
    ASSERT_EQ(board.interruptions.size(), 1U) << "neither came back, and peer 1 was not lost";
    EXPECT_EQ(board.interruptions[0].kind, Interruption::Kind::lost);
    EXPECT_EQ(board, whole());
  }
  const Board later = logs.value().board(static_cast<double>(kBegin_ns) * 1e-9 + 1000);
  EXPECT_EQ(later.identical, true) << "peer 2 may not live any more";
}

TEST_F(Parted, tell_what_was_given_up_when_they_meet) {
  auto logs = open();
  ASSERT_TRUE(logs && poll(logs));
  decide_alone(9, 9);
  ASSERT_TRUE(poll(logs));
  meet();
  ASSERT_TRUE(poll(logs));
  const Board board = logs.value().board(0);
  EXPECT_EQ(board.round, 7U);
  EXPECT_EQ(board.identical, true);
  EXPECT_EQ(board.peers[1].state, PeerState::applying);
  EXPECT_EQ(board.peers[1].samples, 4U * 32);
  EXPECT_EQ(samples_of_peers(board), board.samples);
  const Interruption& joined = board.interruptions.back();
  EXPECT_EQ(joined.kind, Interruption::Kind::joined);
  EXPECT_EQ(joined.round, 7U);
  EXPECT_EQ(joined.detail, "is back, gave up its rounds 4 to 9");
  EXPECT_EQ(board, whole());
}

TEST_F(Parted, read_all_lines_again_only_where_the_run_may_hold_another_history) {
  auto logs = open();
  ASSERT_TRUE(logs && poll(logs));
  // The others' history goes on from that of peer 2 when peer 1 takes it, though it was longer.
  tell(1, {.round = 8, .fact = event::Restore{.digest = "of b8", .record = "b8"}});
  for (const std::uint64_t peer : {1, 2}) decide(peer, 9, "b", 2);
  ASSERT_TRUE(poll(logs));
  const Board board = logs.value().board(0);
  EXPECT_EQ(board.round, 9U);
  EXPECT_EQ(board.identical, true);
  EXPECT_EQ(board, whole());
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
