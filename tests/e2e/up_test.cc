// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "e2e/program.h"

namespace tw {
namespace {

using testing::HasSubstr;

/// A run that outlives the commands about it.
class Up : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_run({.rounds = 100'000}, "program: {command: [" TW_TOY ", --work-ms, 5]}\n");
    plan(2);
  }

  /// Peers of the run live on without any of the programs here.
  void TearDown() override {
    tw({"down", "words", "--state", path("state")}, "end").wait();
    ProgramTest::TearDown();
  }

  void plan(int spot, const std::string& name = "PLAN.yaml") const {
    std::ofstream(path(name)) << "run: run.yaml\npeers:\n"
                              << "  - {site: \"onprem:eu\", gpu: cpu, purchase: owned}\n"
                              << "  - {site: \"gcp:us\", gpu: cpu, count: " << spot
                              << ", purchase: spot, usd_per_h: 0.5}\n";
  }

  /// What it prints; the exit code is the one that is expected.
  std::string command(std::vector<std::string> words, int code = 0) const {
    words.insert(words.end(), {"--state", path("state")});
    Program program = tw(words, "command");
    EXPECT_EQ(program.wait(), code) << program.output();
    return program.output();
  }

  std::string up(const std::string& plan = "PLAN.yaml") const {
    return command({"up", path(plan), "--on", "local", "--name", "words", "--grace", "10s"});
  }

  nlohmann::json status() const {
    return nlohmann::json::parse(command({"status", "words", "--json"}), nullptr, false);
  }

  /// By the id that the start of a peer got: 2000 is the first one of peer 2.
  std::size_t contributions(std::uint64_t id) const {
    const auto log = monitor::read_event_log(state("logs/" + monitor::event_log_name(PeerId{id})));
    if (!log) return 0;
    return static_cast<std::size_t>(std::ranges::count_if(log.value(), [](const monitor::LogEntry& entry) {
      const auto* commit = entry.event.as<event::Commit>();
      return commit && commit->samples > 0;
    }));
  }

  bool contributes(std::uint64_t id) const {
    return wait_until([&] { return contributions(id) >= 2; });
  }

  std::string state(const std::string& name) const { return path("state/words/" + name); }

  pid_t process_of(int peer) const {
    std::ifstream file(state("p" + std::to_string(peer) + "/pid"));
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  /// The program of the run file, which has the parameters: a child of the `tw run` of its peer.
  pid_t program_of(int peer) const {
    const std::string parent = std::to_string(process_of(peer));
    std::ifstream file("/proc/" + parent + "/task/" + parent + "/children");
    pid_t pid = 0;
    file >> pid;
    return pid;
  }
};

TEST_F(Up, starts_a_plan_once_brings_back_what_was_lost_and_follows_another_plan) {
  EXPECT_THAT(up(), HasSubstr("started p1 p2 p3\n"));
  EXPECT_THAT(up(), HasSubstr("nothing to change\n"));
  EXPECT_THAT(command({"up", path("PLAN.yaml"), "--on", "local", "--name", "words", "--grace", "10s", "--set",
                       "training.seed=77"},
                      2),
              HasSubstr("--set training.seed=77: run words goes on without it; tw down words --state "));
  for (const std::uint64_t id : {1000, 2000, 3000}) ASSERT_TRUE(contributes(id)) << id;
  EXPECT_EQ(status()["usd_per_h"], 1);

  ASSERT_GT(process_of(2), 1);
  kill(process_of(2), SIGKILL);
  ASSERT_TRUE(wait_until([&] { return status()["peers"][1]["state"] == "failed"; }));
  EXPECT_EQ(status()["peers"][1]["exit_code"], 128 + SIGKILL);
  EXPECT_THAT(up(), HasSubstr("started p2\n"));
  ASSERT_TRUE(contributes(2001)) << "it takes part again, with --rejoin";

  plan(1, "smaller.yaml");
  EXPECT_THAT(up("smaller.yaml"), HasSubstr("stopped p3\n"));
  EXPECT_EQ(status()["peers"].size(), 2U);
  EXPECT_THAT(command({"logs", "words", "p2"}), HasSubstr("others join with: "));
  EXPECT_THAT(command({"logs", "words", "p3"}), HasSubstr("others join with: ")) << "it is gone";

  EXPECT_THAT(command({"down", "words"}), HasSubstr("run words is down"));
  EXPECT_EQ(status()["peers"][0]["state"], "left");
  const auto logs = monitor::read_event_logs(state("logs"));
  ASSERT_TRUE(logs) << logs.error().message;
  const monitor::Summary summary = summarize(logs.value());
  EXPECT_TRUE(summary.identical) << summary.difference;
  ASSERT_EQ(summary.lost.size(), 1U);
  EXPECT_EQ(summary.lost[0].peer, PeerId{2000});
  std::ofstream(state("logs/events-9000.jsonl")) << "no log\nat all\n";
  EXPECT_THAT(command({"status", "words"}), HasSubstr("progress is not known: "));
}

TEST_F(Up, starts_the_program_of_the_run_file_and_passes_its_exit_codes_through) {
  std::filesystem::copy_file(TW_TOY, path("toy"));
  const auto program = [&](const std::string& setup) {
    std::ofstream(path("run.yaml")) << "training: {target_batch_size: 64, rounds: 100000}\nprogram:\n"
                                    << "  command: [./toy, --work-ms, 1]\n  files: toy\n  setup: " << setup
                                    << "\n  env: {SEED: hidden-7}\n";
  };
  const std::vector<std::string> words = {"up",     path("PLAN.yaml"), "--on",    "local",
                                          "--name", "words",           "--grace", "10s"};
  program("echo $SEED >../said; exit 4");
  EXPECT_THAT(command(words, 1),
              HasSubstr("tw: this machine: line 1 of program.setup (echo $SEED >../said; exit 4) ended with "
                        "exit code 4\n"));
  EXPECT_EQ(content_of(state("said")), "hidden-7\n");
  program("echo $SEED >../said");
  EXPECT_THAT(up(), HasSubstr("started p1 p2 p3\n"));
  for (const std::uint64_t id : {1000, 2000, 3000}) ASSERT_TRUE(contributes(id)) << id;
  EXPECT_EQ(content_of(state("run.yaml")).find("hidden-7"), std::string::npos) << "peers read no program";

  kill(process_of(2), SIGKILL);
  ASSERT_TRUE(wait_until([&] { return status()["peers"][1]["state"] == "failed"; }));
  EXPECT_THAT(up(), HasSubstr("started p2\n"));
  ASSERT_TRUE(contributes(2001)) << "it takes part again, with --rejoin";
  command({"down", "words"});
  for (const auto& peer : status()["peers"]) EXPECT_EQ(peer["exit_code"], 75) << peer;
  const auto logs = monitor::read_event_logs(state("logs"));
  ASSERT_TRUE(logs) << logs.error().message;
  EXPECT_TRUE(summarize(logs.value()).identical);
}

TEST_F(Up, goes_on_from_its_checkpoint_when_each_peer_was_lost_before_the_other_was_back) {
  write_run({.rounds = 100'000},
            "  patience: 3s\ncheckpoint: {every: 2}\nprogram: {command: [" TW_TOY ", --work-ms, 5]}\n");
  plan(1);
  EXPECT_THAT(up(), HasSubstr("started p1 p2\n"));
  ASSERT_TRUE(wait_until([&] { return contributions(1000) > 6; }));
  const pid_t giver = program_of(1);
  ASSERT_GT(giver, 1);
  kill(giver, SIGSTOP);  // it gives nobody the state
  kill(process_of(2), SIGKILL);
  ASSERT_TRUE(wait_until([&] { return status()["peers"][1]["state"] == "failed"; }));
  EXPECT_THAT(up(), HasSubstr("started p2\n"));
  kill(process_of(1), SIGKILL);
  ASSERT_TRUE(wait_until([&] { return status()["peers"][0]["state"] == "failed"; }));
  EXPECT_THAT(up(), HasSubstr("started p1\n"));
  EXPECT_TRUE(contributes(1001));
  EXPECT_TRUE(contributes(2001));
  EXPECT_THAT(command({"logs", "words", "p1"}), HasSubstr("resumed from round"));
  EXPECT_THAT(content_of(state("state.json")), HasSubstr("\"founder\": 1,")) << "of the first start";
}

TEST_F(Up, keeps_no_run_going_whose_peers_ended_with_other_parameters_and_says_so) {
  std::ofstream(path("run.yaml")) << "training: {target_batch_size: 64, rounds: 9}\n"
                                  << "program: {command: [sh, -c, \"echo differs >$TRADEWIND_VERDICT\"]}\n";
  Program keeper = tw({"up", path("PLAN.yaml"), "--on", "local", "--name", "words", "--keep", "--every", "1s",
                       "--state", path("state")},
                      "keeper");
  EXPECT_EQ(keeper.wait(), 1);
  EXPECT_THAT(keeper.output(), HasSubstr("run words has ended; exit code 2 of p1 p2 p3: tw logs words "));
  EXPECT_EQ(keeper.output().find("started again"), std::string::npos) << keeper.output();
  EXPECT_THAT(command({"status", "words"}, 1), HasSubstr("exit code 2 of p1 p2 p3"));
}

TEST_F(Up, takes_folders_of_the_run_file_as_those_beside_it) {
  write_run({.rounds = 100'000},
            "checkpoint: {to: copies}\nprogram: {command: [" TW_TOY ", --work-ms, 5]}\n");
  up();
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(path("copies/peers")); })) << "the rendezvous";
  write_run({.rounds = 100'000}, "checkpoint: {to: \"s3:/copies\"}\nprogram: {command: [" TW_TOY "]}\n");
  EXPECT_THAT(command({"up", path("PLAN.yaml"), "--on", "local", "--name", "other"}, 2),
              HasSubstr("checkpoint.to: expected a folder such as file:/shared, or s3://BUCKET/PREFIX, found "
                        "\"s3:/copies\""));
}

TEST_F(Up, keeps_secrets_from_others) {
  up();
  for (const auto& file : std::filesystem::recursive_directory_iterator(path("state"))) {
    if (file.path().filename() != "token" && file.path().filename() != "ca.key") continue;

    struct stat facts {};

    ASSERT_EQ(::stat(file.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U) << file.path();
  }
  const std::string line = content_of("/proc/" + std::to_string(process_of(1)) + "/cmdline");
  EXPECT_THAT(line, HasSubstr("@" + state("p1/token")));
  const std::string said = command({"up", path("PLAN.yaml"), "--on", "local", "--name", "dry", "--dry-run"});
  EXPECT_THAT(said, HasSubstr("(a secret)"));
  EXPECT_FALSE(std::filesystem::exists(path("state/dry"))) << "a dry run leaves nothing";
}

TEST_F(Up, says_what_is_wrong_in_one_line) {
  const auto complaint = [&](std::vector<std::string> words) { return command(std::move(words), 2); };
  EXPECT_THAT(complaint({"up", path("PLAN.yaml"), "--on", "lokal"}),
              HasSubstr("--on lokal: expected one of ssh, slurm,"));
  EXPECT_THAT(complaint({"up", path("PLAN.yaml"), "--on", "ssh"}), HasSubstr("--on ssh: give --hosts FILE"));
  EXPECT_THAT(complaint({"up", path("PLAN.yaml"), "--on", "local", "--name", "Words"}),
              HasSubstr("--name Words: expected 1 to 40 of a-z"));
  EXPECT_THAT(complaint({"up", path("PLAN.yaml"), "--on", "local", "--name", "words", "--grace", "soon"}),
              HasSubstr("--grace soon: expected a duration such as 20s"));
  EXPECT_THAT(complaint({"status", "words"}), HasSubstr("words: no run of this name"));
  std::filesystem::create_directories(path("state/words"));
  std::ofstream(state("state.json")) << "{\"tradewind_run\": 1, \"engine\"";
  EXPECT_THAT(complaint({"status", "words"}), HasSubstr("state.json: damaged, or not of tradewind"));
  std::filesystem::remove_all(path("state/words"));
}

TEST_F(Up, whoever_watches_a_run_that_is_stopped_ends_and_starts_nobody) {
  Program keeper = tw({"up", path("PLAN.yaml"), "--on", "local", "--name", "words", "--grace", "10s",
                       "--keep", "--every", "1s", "--state", path("state")},
                      "keeper");
  ASSERT_TRUE(wait_until([&] { return keeper.says("watching every"); })) << keeper.output();
  command({"down", "words"});
  EXPECT_EQ(keeper.wait(), 0);
  EXPECT_THAT(keeper.output(), HasSubstr("run words was stopped by tw down\n"));
  for (const auto& peer : status()["peers"]) EXPECT_EQ(peer["state"], "left") << peer;
  EXPECT_THAT(up(), HasSubstr("started p1 p2 p3\n"));
}

}  // namespace
}  // namespace tw
