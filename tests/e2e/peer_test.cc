// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "e2e/program.h"

namespace tw {
namespace {

class Peers : public ProgramTest {
 protected:
  /// Rounds of this peer from `from` on that it contributed to.
  std::size_t contributions(std::uint64_t id, Round from) const {
    const auto commits = events_of(id, Phase::commit, from);
    return static_cast<std::size_t>(std::count_if(commits.begin(), commits.end(), [](const Event& e) {
      return number_in(e, "samples").value_or(0) > 0;
    }));
  }

  /// The newest checkpoint files, newest first.
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    std::error_code none_yet;
    for (const auto& file : std::filesystem::directory_iterator(path("checkpoints"), none_yet))
      if (file.path().extension() == ".tw") names.push_back(file.path().string());
    std::sort(names.rbegin(), names.rend());
    return names;
  }
};

TEST_F(Peers, bring_back_one_that_stood_still) {
  const std::string run = write_run({.rounds = 100'000});
  Program first = peer(run, 1, {"--wait-for", "3"});
  const std::string address = address_of(1);
  EXPECT_TRUE(wait_until([&] {
    return first.says("others join with: tw train " + run + " --join " + address);
  })) << first.output();
  Program second = peer(run, 2, {"--join", address});
  Program third = peer(run, 3, {"--join", address});
  ASSERT_TRUE(wait_for_round(3, 3));

  const auto stopped_at = std::chrono::steady_clock::now();
  third.send(SIGSTOP);
  const auto lost = [&] {
    const auto events = events_of(1, Phase::lost);
    return std::any_of(events.begin(), events.end(), [](const Event& e) { return e.peer == PeerId{3}; });
  };
  ASSERT_TRUE(wait_until(lost, 3s)) << "dropped within 3 s";
  const Round without = last_round(1);
  ASSERT_TRUE(wait_for_round(1, without + 2)) << "the others go on";
  std::this_thread::sleep_until(stopped_at + 4s);
  third.send(SIGCONT);

  ASSERT_TRUE(wait_until([&] { return contributions(3, without + 1) >= 2; })) << "it contributes again";
  for (const Program* program : {&third, &second, &first}) program->send(SIGTERM);
  for (Program* program : {&third, &second, &first}) EXPECT_EQ(program->wait(), 0);
  const Summary end = summary();
  EXPECT_TRUE(end.identical) << end.difference;
  ASSERT_EQ(end.lost.size(), 1U);
  EXPECT_EQ(end.lost[0].peer, PeerId{3});
  EXPECT_EQ(end.joined.size(), 1U);
  EXPECT_GE(end.samples, end.rounds * 256 - 128) << "half of a batch at most was left to the next round";
  EXPECT_LE(end.samples, end.rounds * 256);
}

TEST_F(Peers, say_within_five_seconds_what_is_known_of_a_first_peer_that_does_not_answer) {
  Program lonely = peer(write_run({}), 2, {"--join", "127.0.0.1:1"});
  ASSERT_TRUE(wait_until([&] { return !events_of(2, Phase::wait).empty(); })) << lonely.output();
  const Event told = events_of(2, Phase::wait).front();
  EXPECT_LE(to_seconds(told.at - events_of(2, Phase::start).front().at), 5);
  EXPECT_TRUE(told.why.starts_with("waiting: no link to 127.0.0.1:1: connection refused, ")) << told.why;
  EXPECT_NE(told.why.find("attempts, gives up in "), std::string::npos) << told.why;
  EXPECT_TRUE(wait_until([&] { return lonely.says(told.why); })) << lonely.output();
}

TEST_F(Peers, leave_after_the_round_when_asked_once_and_at_once_when_asked_twice) {
  const std::string run = write_run({.rounds = 100'000});
  Program first = peer(run, 1, {"--wait-for", "3"});
  const std::string address = address_of(1);
  Program second = peer(run, 2, {"--join", address});
  Program third = peer(run, 3, {"--join", address});
  ASSERT_TRUE(wait_for_round(2, 3));

  second.send(SIGTERM);
  ASSERT_EQ(second.wait(), 0);
  EXPECT_TRUE(second.says("s after the signal")) << second.output();
  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3)) << "the others go on";
  EXPECT_FALSE(third.ended());

  third.send(SIGTERM);
  third.send(SIGINT);
  EXPECT_EQ(third.wait(5s), 130);
  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3));
  first.send(SIGINT);
  EXPECT_EQ(first.wait(), 0);
  const Summary end = summary();
  EXPECT_TRUE(end.identical) << end.difference;
  EXPECT_EQ(end.samples, end.rounds * 256) << "what was handed in counts, once";
}

TEST_F(Peers, resume_from_the_newest_checkpoint_that_is_whole) {
  const std::string run =
      write_run({.rounds = 100'000}, "checkpoint:\n  folder: checkpoints\n  every: 2\n  keep: 4\n");
  {
    Program first = peer(run, 1, {"--wait-for", "2"});
    Program second = peer(run, 2, {"--join", address_of(1)});
    ASSERT_TRUE(wait_until([&] { return checkpoints().size() >= 3; }));
    for (const Program* program : {&first, &second}) program->send(SIGKILL);
    for (Program* program : {&first, &second}) EXPECT_EQ(program->wait(), 128 + SIGKILL);
  }
  const auto files = checkpoints();
  ASSERT_GE(files.size(), 2U);
  std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) / 2);
  const Round expected = std::stoull(std::filesystem::path(files[1]).stem().string().substr(6));

  Program again = peer(run, 3);
  ASSERT_TRUE(wait_until([&] { return again.says("resumed from round"); })) << again.output();
  EXPECT_TRUE(again.says("resumed from round " + std::to_string(expected) + "\n")) << again.output();
  EXPECT_TRUE(again.says("skipped a checkpoint: ")) << again.output();
  EXPECT_TRUE(again.says(std::filesystem::path(files[0]).filename().string())) << again.output();
  ASSERT_TRUE(wait_for_round(3, expected + 2));
  again.send(SIGTERM);
  EXPECT_EQ(again.wait(), 0);
  EXPECT_EQ(events_of(3, Phase::accumulate).front().round, expected + 1);
}

TEST_F(Peers, train_on_when_there_is_no_room_for_checkpoints) {
  const std::string run = write_run({.rounds = 6}, "checkpoint:\n  folder: checkpoints\n  every: 2\n");
  Program program({"train", run, "--id", "1", "--out", path("out")},
                  {.output = path("full.txt"), .separate_errors = {}, .largest_file_bytes = 200'000});
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(program.says("round 2  no checkpoint, training goes on: ")) << program.output();
  EXPECT_TRUE(program.says("checkpoints/round-000002")) << program.output();
  EXPECT_EQ(last_round(1), 6U);
  EXPECT_TRUE(checkpoints().empty());
}

}  // namespace
}  // namespace tw
