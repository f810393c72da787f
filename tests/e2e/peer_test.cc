// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "e2e/program.h"

namespace tw {
namespace {

using world::Phase;

class Peers : public ProgramTest {
 protected:
  /// Rounds of this peer from `from` on that it contributed to.
  std::size_t contributions(std::uint64_t id, Round from) const {
    const auto commits = events_of(id, Phase::commit, from);
    return static_cast<std::size_t>(std::count_if(commits.begin(), commits.end(), [](const world::Event& e) {
      return e.as<event::Commit>()->samples > 0;
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
  Program first = peer(run, 1, {"wait_for=3"});
  const std::string address = address_of(1);
  EXPECT_TRUE(wait_until([&] { return first.says("others join with: join=" + address); })) << first.output();
  Program second = peer(run, 2, {"join=" + address});
  Program third = peer(run, 3, {"join=" + address});
  ASSERT_TRUE(wait_for_round(3, 3));

  const auto stopped_at = std::chrono::steady_clock::now();
  third.send(SIGSTOP);
  const auto lost = [&] {
    const auto events = events_of(1, Phase::lost);
    return std::any_of(events.begin(), events.end(),
                       [](const world::Event& e) { return e.peer == PeerId{3}; });
  };
  ASSERT_TRUE(wait_until(lost, 3s)) << "dropped within 3 s";
  const Round without = last_round(1);
  ASSERT_TRUE(wait_for_round(1, without + 2)) << "the others go on";
  std::this_thread::sleep_until(stopped_at + 4s);
  third.send(SIGCONT);

  ASSERT_TRUE(wait_until([&] { return contributions(3, without + 1) >= 2; })) << "it contributes again";
  for (const Program* program : {&third, &second, &first}) program->send(SIGTERM);
  for (Program* program : {&third, &second, &first}) EXPECT_EQ(program->wait(), kGoesOn);
  const monitor::Summary end = summary();
  EXPECT_TRUE(end.identical) << end.difference;
  ASSERT_EQ(end.lost.size(), 1U);
  EXPECT_EQ(end.lost[0].peer, PeerId{3});
  EXPECT_EQ(end.joined.size(), 1U);
  EXPECT_GE(end.samples, end.rounds * 256 - 128) << "half of a batch at most was left to the next round";
  EXPECT_LE(end.samples, end.rounds * 256);
}

TEST_F(Peers, say_within_five_seconds_what_is_known_of_a_first_peer_that_does_not_answer) {
  Program lonely = peer(write_run({}), 2, {"join=127.0.0.1:1"});
  ASSERT_TRUE(wait_until([&] { return !events_of(2, Phase::wait).empty(); })) << lonely.output();
  const world::Event told = events_of(2, Phase::wait).front();
  EXPECT_LE(to_seconds(told.at - events_of(2, Phase::start).front().at), 5);
  EXPECT_TRUE(told.why.starts_with("waiting: no link to 127.0.0.1:1: connection refused, ")) << told.why;
  EXPECT_NE(told.why.find("attempts, gives up in "), std::string::npos) << told.why;
  EXPECT_TRUE(wait_until([&] { return lonely.says(told.why); })) << lonely.output();
}

TEST_F(Peers, leave_after_the_round_when_asked_once_and_at_once_when_asked_twice) {
  const std::string run = write_run({.rounds = 100'000});
  Program first = peer(run, 1, {"wait_for=3"});
  const std::string address = address_of(1);
  Program second = peer(run, 2, {"join=" + address});
  Program third = peer(run, 3, {"join=" + address});
  ASSERT_TRUE(wait_for_round(2, 3));

  second.send(SIGTERM);
  ASSERT_EQ(second.wait(), kGoesOn);
  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3)) << "the others go on";
  EXPECT_FALSE(third.ended());

  third.send(SIGTERM);
  third.send(SIGINT);
  EXPECT_EQ(third.wait(5s), 130);
  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3));
  first.send(SIGINT);
  EXPECT_EQ(first.wait(), 130);
  const monitor::Summary end = summary();
  EXPECT_TRUE(end.identical) << end.difference;
  EXPECT_EQ(end.samples, end.rounds * 256) << "what was handed in counts, once";
}

TEST_F(Peers, resume_from_the_newest_checkpoint_that_is_whole) {
  const std::string run =
      write_run({.rounds = 100'000}, "checkpoint:\n  folder: checkpoints\n  every: 2\n  keep: 4\n");
  {
    Program first = peer(run, 1, {"wait_for=2"});
    Program second = peer(run, 2, {"join=" + address_of(1)});
    ASSERT_TRUE(wait_until([&] { return checkpoints().size() >= 3; }));
    for (const Program* program : {&first, &second}) program->send(SIGKILL);
    for (Program* program : {&first, &second}) EXPECT_EQ(program->wait(), 128 + SIGKILL);
  }
  const auto files = checkpoints();
  ASSERT_GE(files.size(), 2U);
  std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) / 2);
  const Round expected = std::stoull(std::filesystem::path(files[1]).stem().string().substr(6));

  Program again = peer(run, 3, {"training.patience=1s"});
  ASSERT_TRUE(wait_until([&] { return again.says("resumed from round"); })) << again.output();
  EXPECT_TRUE(again.says("then it resumes alone from its checkpoint of round ")) << again.output();
  EXPECT_TRUE(again.says("resumed from round " + std::to_string(expected) + "\n")) << again.output();
  EXPECT_TRUE(again.says("skipped a checkpoint: ")) << again.output();
  EXPECT_TRUE(again.says(std::filesystem::path(files[0]).filename().string())) << again.output();
  ASSERT_TRUE(wait_for_round(3, expected + 2));
  again.send(SIGTERM);
  EXPECT_EQ(again.wait(), kGoesOn);
  EXPECT_EQ(events_of(3, Phase::accumulate).front().round, expected + 1);
}

TEST_F(Peers, end_where_the_checkpoint_has_as_many_rounds_as_the_run_is_to_have_now) {
  const std::string run = write_run({.rounds = 100'000}, "checkpoint:\n  every: 1\n");
  {
    Program first = peer(run, 1);
    ASSERT_TRUE(wait_until([&] {
      const auto saved = events_of(1, Phase::checkpoint);
      return !saved.empty() && saved.back().round >= 2;
    }));
    first.send(SIGKILL);
    EXPECT_EQ(first.wait(), 128 + SIGKILL);
  }
  const Round then = last_round(1);
  Program again = peer(run, 1, {"training.rounds=2", "no_rejoin=true"});
  EXPECT_EQ(again.wait(), 0) << again.output();
  EXPECT_TRUE(again.says("the run is complete: round ")) << again.output();
  EXPECT_TRUE(again.says("; raise rounds to go on")) << again.output();
  EXPECT_EQ(last_round(1), then) << "neither one more, nor all of them again";
}

/// A run token whose only address is that of the first peer, which is killed and started again with the same
/// arguments, as every launcher does.
class Relaunched : public Peers {
 protected:
  void SetUp() override {
    Peers::SetUp();
    address_ = "127.0.0.1:" + std::to_string(20'000 + getpid() % 20'000);
    Program token(
        {"token", path("run"), "--address", address_},
        {.output = path("token.txt"), .separate_errors = path("token-errors.txt"), .largest_file_bytes = {}});
    ASSERT_EQ(token.wait(), 0) << content_of(path("token-errors.txt"));
    run_ = write_run({.rounds = 100'000});
  }

  Program start(std::uint64_t id, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run_file=" + run_, "token=@" + path("token.txt"), "training.patience=8s"});
    return toy("peer-" + std::to_string(id), words_of(id, more));
  }

  Program start_first() const { return start(1, {"listen=" + address_}); }

  /// What the first peer did since it was started last.
  std::vector<world::Event> since_its_start(Phase phase) const {
    std::vector<world::Event> events;
    for (const monitor::LogEntry& entry : log_of(1)) {
      if (entry.event.phase() == Phase::start) events.clear();
      if (entry.event.phase() == phase) events.push_back(entry.event);
    }
    return events;
  }

  std::size_t starts() const { return events_of(1, Phase::start).size(); }

  void expect_one_history(Round then, Program& first, Program& second) {
    ASSERT_TRUE(wait_until([&] { return starts() == 2 && !since_its_start(Phase::commit).empty(); }));
    EXPECT_GT(since_its_start(Phase::commit).front().round, then) << first.output();
    const auto from_others = [](const world::Event& event) {
      const auto* restored = event.as<event::Restore>();
      return !restored->digest.empty() && restored->cause == event::Cause::none;
    };
    EXPECT_TRUE(std::ranges::any_of(since_its_start(Phase::restore), from_others)) << first.output();
    EXPECT_TRUE(events_of(2, Phase::restore, then).empty()) << "it gave up a history: " << second.output();
    ASSERT_TRUE(wait_for_round(2, since_its_start(Phase::commit).front().round + 2));
    for (Program* program : {&first, &second}) program->send(SIGTERM);
    for (Program* program : {&first, &second}) EXPECT_EQ(program->wait(), kGoesOn);
    const monitor::Summary end = summary();
    EXPECT_TRUE(end.identical) << end.difference;
  }

  std::string address_, run_;
};

TEST_F(Relaunched, first_peer_begins_no_run_beside_the_one_that_waits_for_it) {
  Program first = start_first();
  Program second = start(2);
  ASSERT_TRUE(wait_until([&] { return contributions(2, 1) >= 2; }));
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  const Round then = last_round(2);
  Program again = start_first();
  expect_one_history(then, again, second);
  EXPECT_TRUE(again.says("waiting for the other peers of this run, up to 8 s (its event log is "))
      << again.output();
}

TEST_F(Relaunched, first_peer_joins_those_who_are_rounds_ahead) {
  Program first = start_first();
  Program second = start(2);
  ASSERT_TRUE(wait_until([&] { return contributions(2, 1) >= 2; }));
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  const Round then = last_round(2) + 7;
  ASSERT_TRUE(wait_for_round(2, then)) << "it goes on alone after its patience";
  Program again = start_first();
  expect_one_history(then, again, second);
}

TEST_F(Relaunched, finds_nobody_and_may_be_started_again_later) {
  Program lonely = start(2, {"rejoin=true", "join=127.0.0.1:1", "training.patience=2s"});
  EXPECT_EQ(lonely.wait(), 75) << "as after a notice: the run may go on elsewhere";
  EXPECT_TRUE(lonely.says("nobody who has the state of the run can be reached")) << lonely.output();
  EXPECT_EQ(last_round(2), 0U) << "it began no run of its own";
}

TEST_F(Relaunched, first_peer_ends_with_one_message_when_all_is_lost_and_begins_anew_when_told_so) {
  {
    Program first = start_first();
    ASSERT_TRUE(wait_for_round(1, 2));
    first.send(SIGKILL);
    EXPECT_EQ(first.wait(), 128 + SIGKILL);
  }
  for (const auto& more : {std::vector<std::string>{"training.patience=1s"}, {"no_rejoin=true"}}) {
    std::vector<std::string> arguments = {"listen=" + address_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Program again = start(1, arguments);
    EXPECT_EQ(again.wait(), 2) << "no launcher starts it again";
    EXPECT_TRUE(again.says(" rounds of this run are lost (its event log is ")) << again.output();
    EXPECT_TRUE(again.says("start this peer once with anew (--anew; ")) << again.output();
    EXPECT_TRUE(since_its_start(Phase::commit).empty());
  }
  Program last = start(1, {"listen=" + address_, "anew=true", "training.patience=1h"});
  ASSERT_TRUE(wait_until([&] { return starts() == 4 && !since_its_start(Phase::commit).empty(); }));
}

/// What the newest checkpoint in the usual place has in its name.
Round newest_round_in(const std::string& folder) {
  Round newest = 0;
  std::error_code none_yet;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder, none_yet))
    if (file.path().extension() == ".tw")
      newest = std::max<Round>(newest, std::stoull(file.path().stem().string().substr(6)));
  return newest;
}

TEST_F(Relaunched, go_on_from_a_checkpoint_that_nobody_asked_for_when_all_were_killed) {
  {
    Program first = start(1, {"listen=" + address_, "wait_for=4", "checkpoint.every=3"});
    Program second = start(2, {"checkpoint.every=3"});
    Program third = start(3, {"checkpoint.every=3"});
    Program fourth = start(4, {"checkpoint.every=3"});
    ASSERT_TRUE(wait_until([&] { return newest_round_in(path("out/checkpoints")) >= 3; }));
    EXPECT_TRUE(first.says("checkpoints in " + path("out/checkpoints/"))) << first.output();
    for (const Program* program : {&first, &second, &third, &fourth}) program->send(SIGKILL);
  }
  const Round saved = newest_round_in(path("out/checkpoints"));
  const std::string rounds = "training.rounds=" + std::to_string(saved + 4);
  Program first = start(1, {"listen=" + address_, "wait_for=2", "training.patience=1s", rounds});
  Program second = start(2, {rounds});
  EXPECT_EQ(first.wait(), 0) << first.output();
  EXPECT_EQ(second.wait(), 0) << second.output();
  EXPECT_EQ(since_its_start(Phase::accumulate).front().round, saved + 1) << first.output();
  const world::Event end = since_its_start(Phase::commit).back();
  EXPECT_EQ(end.round, saved + 4);
  EXPECT_EQ(end.as<event::Commit>()->samples_total, 256 * (saved + 4));
  EXPECT_EQ(newest_round_in(path("out/checkpoints")), saved + 4) << "also that of the complete run";
}

TEST_F(Relaunched, go_on_from_what_the_last_one_to_leave_saved) {
  Program first = start_first();
  Program second = start(2);
  ASSERT_TRUE(wait_until([&] { return contributions(2, 1) >= 2; }));
  for (Program* program : {&first, &second}) program->send(SIGTERM);
  for (Program* program : {&first, &second}) EXPECT_EQ(program->wait(), kGoesOn) << program->output();
  const Round saved = newest_round_in(path("out/checkpoints"));
  EXPECT_EQ(saved, std::max(last_round(1), last_round(2)));
  Program again = start(1, {"listen=" + address_, "training.patience=1s"});
  ASSERT_TRUE(wait_until([&] { return again.says("resumed from round " + std::to_string(saved)); }))
      << again.output();
}

TEST_F(Peers, train_on_when_there_is_no_room_for_checkpoints) {
  const std::string run = write_run({.rounds = 6}, "checkpoint:\n  folder: checkpoints\n  every: 2\n");
  const std::vector<std::string> words =
      words_of(1, {"--values", "100000", "insecure=true", "run_file=" + run});
  Program program(words, {.output = path("full.txt"), .largest_file_bytes = 200'000, .program = TW_TOY});
  EXPECT_EQ(program.wait(), 1) << "the last checkpoint that was promised is missing";
  EXPECT_TRUE(program.says("round 2: no checkpoint, training goes on: ")) << program.output();
  EXPECT_TRUE(program.says("round 6: no checkpoint: ")) << program.output();
  EXPECT_TRUE(program.says("checkpoints/round-000002")) << program.output();
  EXPECT_EQ(last_round(1), 6U);
  EXPECT_TRUE(checkpoints().empty());
}

TEST_F(Peers, that_are_anchors_lead_though_others_came_first_and_copy_checkpoints_away) {
  const std::string run =
      write_run({.rounds = 100'000},
                "checkpoint:\n  folder: checkpoints\n  every: 2\n  keep: 2\n  to: away\n  logs: false\n");
  Program first = peer(run, 1);
  const std::string address = address_of(1);
  ASSERT_TRUE(wait_for_round(1, 2));
  EXPECT_FALSE(std::filesystem::exists(path("away"))) << "the first peer is no anchor";
  Program anchor = peer(run, 2, {"join=" + address, "role=anchor"});
  EXPECT_TRUE(wait_until([&] { return events_of(2, Phase::lead).size() >= 3; })) << anchor.output();
  ASSERT_TRUE(wait_until([&] { return events_of(2, Phase::copy).size() >= 2; })) << anchor.output();
  for (Program* program : {&first, &anchor}) program->send(SIGTERM);
  for (Program* program : {&first, &anchor}) (void)program->wait();
  std::size_t copies = 0;
  for (const auto& file : std::filesystem::directory_iterator(path("away"))) {
    EXPECT_EQ(file.path().extension(), ".tw") << file.path() << " is half written";
    ++copies;
  }
  EXPECT_GE(copies, 1U);
  EXPECT_LE(copies, 2U);
}

}  // namespace
}  // namespace tw
