// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "e2e/program.h"

namespace tw {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr Round kRounds = 40;
constexpr std::uint64_t kBatch = 256;

/// Processes whose environment or command line names the folder of this test.
std::vector<std::string> processes_of(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos || pid == std::to_string(getpid())) continue;
    const std::string state = content_of("/proc/" + pid + "/stat");
    if (state.find(") Z ") != std::string::npos) continue;
    const std::string named =
        content_of("/proc/" + pid + "/cmdline") + content_of("/proc/" + pid + "/environ");
    if (named.find(folder) != std::string::npos) found.push_back(pid);
  }
  return found;
}

/// Crews of `tw run`, of the small program over the C interface.
class Run : public ProgramTest {
 protected:
  /// more: options of tw run; settings: of the program.
  Program start(const Words& more, const Words& settings = {}) const {
    Words words = {"run", "--out", path("out")};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", TW_TOY, "--work-ms", "5", "training.exact_batches=true",
                               "training.target_batch_size=" + std::to_string(kBatch)});
    words.insert(words.end(), settings.begin(), settings.end());
    return tw(std::move(words), "run");
  }

  static std::string rounds(Round count) { return "training.rounds=" + std::to_string(count); }

  /// The report of a run of kRounds that ended well.
  nlohmann::json report_of(const Words& more, Round count = kRounds) {
    Program program = start(more, {rounds(count)});
    EXPECT_EQ(program.wait(120s), 0) << program.output();
    said_ = program.output();
    auto json = summary_json();
    EXPECT_EQ(json["identical"], true) << said_;
    EXPECT_EQ(json["rounds"], count);
    EXPECT_EQ(json["samples"], count * kBatch);
    return json;
  }

  /// What process `number` found: the numbers after "w".
  std::vector<double> found_by(int number) const {
    const std::string mark = "[" + std::to_string(number) + "] w ";
    const std::size_t at = said_.find(mark);
    std::vector<double> values;
    if (at == std::string::npos) return values;
    std::istringstream words(said_.substr(at + mark.size(), said_.find('\n', at) - at - mark.size()));
    for (double value = 0; words >> value;) values.push_back(value);
    return values;
  }

  std::string said_;
};

TEST_F(Run, goes_on_without_a_killed_peer_loses_no_sample_and_computes_what_one_computes) {
  report_of({"--peers", "1", "--join", "100000"});
  EXPECT_THAT(said_, HasSubstr("--join 100000 did not come about"));
  const std::vector<double> alone = found_by(1);
  ASSERT_EQ(alone.size(), 9U) << said_;
  std::filesystem::remove_all(path("out"));

  const auto json = report_of({"--peers", "4", "--kill", "2@10"});
  ASSERT_EQ(json["lost"].size(), 1U);
  EXPECT_EQ(json["lost"][0]["peer"], 2);
  EXPECT_GE(json["lost"][0]["round"], 10);
  ASSERT_TRUE(json["lost"][0]["detected_s"].is_number());
  EXPECT_LT(json["lost"][0]["detected_s"], 3.0);
  EXPECT_EQ(json["peers"][0]["digest"], json["peers"][2]["digest"]);
  EXPECT_THAT(said_, HasSubstr("parameters     identical on all peers in every round"));
  for (const int number : {1, 3, 4}) {
    const std::vector<double> found = found_by(number);
    ASSERT_EQ(found.size(), alone.size()) << said_;
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], alone[i], 1e-4) << i;
  }
}

TEST_F(Run, leaves_to_the_program_what_settings_go_together_with) {
  std::ofstream(path("part.yaml")) << "training: {batch_min: 32}\n";
  Program program = tw({"run", path("part.yaml"), "--set", "rounds=3", "--", TW_TOY,
                        "training.target_batch_size=auto", "checkpoint.folder=none"},
                       "run");
  EXPECT_EQ(program.wait(60s), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("round 1/3"));
}

TEST_F(Run, goes_on_without_its_leader) {
  const auto json = report_of({"--peers", "3", "--kill", "leader@5"});
  ASSERT_EQ(json["lost"].size(), 1U);
  const std::uint64_t dead = json["lost"][0]["peer"];
  std::vector<std::string> digests;
  for (const auto& peer : json["peers"])
    if (peer["id"] != dead) digests.push_back(peer["digest"]);
  ASSERT_EQ(digests.size(), 2U);
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(Run, lets_another_process_join_which_then_contributes) {
  // The first peer, whose address all know, is gone by then.
  const auto json = report_of({"--peers", "3", "--kill", "1@3", "--join", "6"}, 300);
  ASSERT_EQ(json["joined"].size(), 1U);
  EXPECT_EQ(json["joined"][0]["peer"], 4);
  EXPECT_TRUE(json["joined"][0]["seconds"].is_number());
  ASSERT_EQ(json["peers"].size(), 4U);
  EXPECT_GT(json["peers"][3]["samples"], 0);
  EXPECT_EQ(json["peers"][3]["digest"], json["peers"][1]["digest"]);
}

TEST_F(Run, with_late_updates_computes_what_one_process_with_late_updates_computes) {
  const Words late = {"training.mode=delayed", "training.exact_batches=false", rounds(kRounds)};
  std::vector<std::vector<double>> found;
  for (const Words& peers : {Words{"--peers", "1", "--join", "100000"}, Words{"--peers", "4"}}) {
    std::filesystem::remove_all(path("out"));
    Program program = start(peers, late);
    ASSERT_EQ(program.wait(120s), 0) << program.output();
    said_ = program.output();
    EXPECT_EQ(summary_json()["samples"], kRounds * kBatch);
    found.push_back(found_by(1));
  }
  ASSERT_EQ(found[0].size(), 9U) << said_;
  for (std::size_t i = 0; i < found[0].size(); ++i) EXPECT_NEAR(found[0][i], found[1][i], 1e-4) << i;
}

TEST_F(Run, with_late_updates_goes_on_without_its_leader_and_with_a_joiner) {
  Program program = start({"--peers", "3", "--kill", "leader@5", "--join", "8"},
                          {"training.mode=delayed", "training.exact_batches=false", rounds(200)});
  ASSERT_EQ(program.wait(120s), 0) << program.output();
  const auto json = summary_json();
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["rounds"], 200);
  const std::uint64_t samples = json["samples"], later = json["samples_carried"];
  EXPECT_EQ(samples + later, 200 * kBatch);
  EXPECT_EQ(json["lost"].size(), 1U);
  ASSERT_EQ(json["joined"].size(), 1U);
  EXPECT_TRUE(json["joined"][0]["seconds"].is_number()) << "it contributed";
}

TEST_F(Run, waits_for_no_process_that_stands_still) {
  report_of({"--peers", "3", "--stop", "3@5:2"}, 100);
  EXPECT_THAT(said_, HasSubstr("round 5: process 3 stands still for 2 s"));
}

TEST_F(Run, goes_on_in_the_same_folder_from_its_checkpoint) {
  report_of({"--peers", "2"}, 10);
  EXPECT_EQ(summary_json()["peers"].size(), 2U);
  report_of({"--peers", "2"}, 25);
  EXPECT_THAT(said_, HasSubstr("goes on from the checkpoint of round 10"));
  EXPECT_EQ(summary_json()["peers"].size(), 4U) << "ids of their own";
}

TEST_F(Run, with_another_setting_in_the_same_folder_is_shown_alone) {
  report_of({"--peers", "2"}, 10);
  EXPECT_THAT(said_, Not(HasSubstr("another one than before")));
  Program other = start({"--peers", "2"}, {rounds(10), "training.target_batch_size=512"});
  ASSERT_EQ(other.wait(120s), 0) << other.output();
  EXPECT_THAT(other.output(),
              HasSubstr("is another one than before (another setting or model): events-1.jsonl, "
                        "events-2.jsonl of run "));
  const auto json = summary_json();
  EXPECT_EQ(json["samples"], 10 * 512);
  EXPECT_FALSE(json.contains("dropped"));
  ASSERT_EQ(json["peers"].size(), 2U);
  EXPECT_EQ(json["peers"][0]["id"], 3);

  Program report = tw({"report", path("out")}, "report"), top = tw({"top", path("out"), "--once"}, "top");
  for (Program* program : {&report, &top}) {
    EXPECT_EQ(program->wait(), 0) << program->output();
    EXPECT_THAT(program->output(), HasSubstr("left out: events-1.jsonl, events-2.jsonl of run "));
  }
  EXPECT_THAT(report.output(), HasSubstr("samples        5,120"));
  EXPECT_THAT(top.output(), HasSubstr("2 peers: 2 left"));
}

TEST_F(Run, of_a_folder_that_cannot_be_made_says_that_alone) {
  Program program = tw({"run", "--peers", "2", "--out", path("init.txt"), "--", TW_TOY}, "run");
  EXPECT_EQ(program.wait(), 2);
  EXPECT_EQ(program.output(),
            "tw: --out " + path("init.txt") + ": cannot make this folder: Not a directory\n");
}

TEST_F(Run, whose_summary_cannot_be_written_does_not_say_that_it_was) {
  std::filesystem::create_directories(path("out/summary.json"));
  Program program = start({"--peers", "2"}, {rounds(3)});
  EXPECT_EQ(program.wait(120s), 1) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("summary.json: cannot be written"));
  EXPECT_THAT(program.output(), HasSubstr("\nevent logs: " + path("out")));
  EXPECT_THAT(program.output(), Not(HasSubstr("event logs and summary.json")));
}

TEST_F(Run, a_process_that_is_started_again_goes_on_though_its_program_says_anew) {
  Program program = start({"--peers", "2", "--restarts", "1"}, {rounds(400), "anew=true"});
  ASSERT_TRUE(wait_for_round(2, 3)) << program.output();
  for (const std::string& pid : processes_of(path("out")))
    if (content_of("/proc/" + pid + "/environ").find("TRADEWIND_ID=2") != std::string::npos)
      kill(std::stoi(pid), SIGKILL);
  EXPECT_EQ(program.wait(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("anew=True of the program does not count"));
  EXPECT_EQ(summary_json()["peers"].size(), 3U) << "it came back as peer 3";
}

TEST_F(Run, starts_a_process_for_each_gpu) {
  std::filesystem::create_directory(path("bin"));
  const std::string tool = path("bin/nvidia-smi");
  std::ofstream(tool) << "#!/bin/sh\necho 'GPU 0: T4 (UUID: GPU-a)'; echo 'GPU 1: T4 (UUID: GPU-b)'\n";
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  const std::string with_tool = "PATH=" + path("bin") + ":" + std::getenv("PATH");
  Program program({"run", "--peers", "gpus", "--", "sh", "-c", "echo sees $CUDA_VISIBLE_DEVICES"},
                  {.output = path("gpus.txt"),
                   .separate_errors = {},
                   .largest_file_bytes = {},
                   .enter = {"/usr/bin/env", "-u", "CUDA_VISIBLE_DEVICES", with_tool}});
  program.wait();
  for (const char* line : {"[1] sees 0\n", "[2] sees 1\n"}) EXPECT_THAT(program.output(), HasSubstr(line));
}

TEST_F(Run, leaves_no_process_even_when_it_is_killed) {
  Program program = start({"--peers", "3"}, {rounds(100'000)});
  ASSERT_TRUE(wait_for_round(1, 2));
  EXPECT_EQ(processes_of(path("out")).size(), 4U);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_TRUE(wait_until([&] { return processes_of(path("out")).empty(); }, 5s));

  Program report = tw({"report", path("out")}, "report");
  EXPECT_EQ(report.wait(), 0) << "what is left can be read";
  EXPECT_TRUE(report.says("identical on all peers")) << report.output();
}

TEST_F(Run, whose_launcher_is_killed_is_left_by_programs_behind_another_one) {
  const std::string toy = TW_TOY " --work-ms 5 training.rounds=100000 training.target_batch_size=256";
  Program program =
      tw({"run", "--peers", "2", "--out", path("out"), "--", "sh", "-c", toy + "; echo end"}, "run");
  ASSERT_TRUE(wait_for_round(1, 2)) << program.output();
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_TRUE(wait_until([&] { return processes_of(path("out")).empty(); }, 20s));
  for (const std::uint64_t id : {1, 2}) {
    const auto warnings = events_of(id, world::Phase::warn);
    const std::string expected =
        "tw run (process " + std::to_string(program.pid()) + ") is gone: leaving the run";
    EXPECT_TRUE(std::ranges::any_of(warnings, [&](const auto& event) { return event.why == expected; }))
        << id;
    EXPECT_EQ(events_of(id, world::Phase::notice).size(), 1U) << id;
  }
}

TEST_F(Run, in_which_a_program_ends_with_0_in_the_middle_says_so) {
  const std::string toy = TW_TOY " --work-ms 5 training.rounds=100000 training.target_batch_size=256";
  Program program =
      tw({"run", "--out", path("out"), "--", "sh", "-c", toy + " & sleep 2; kill -9 $!; exit 0"}, "run");
  EXPECT_EQ(program.wait(), 1) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("process 1 ended with exit code 0; the run is not complete"));
}

TEST_F(Run, leaves_after_a_hangup_with_a_checkpoint) {
  Program program = start({"--peers", "2"}, {rounds(100'000)});
  ASSERT_TRUE(wait_for_round(1, 2)) << program.output();
  program.send(SIGHUP);
  EXPECT_EQ(program.wait(), kGoesOn) << program.output();
  EXPECT_FALSE(std::filesystem::is_empty(path("out/checkpoints")));
}

TEST_F(Run, leaves_after_a_hangup_with_a_checkpoint_behind_another_program_too) {
  const std::string toy = TW_TOY " --work-ms 5 training.rounds=100000 training.target_batch_size=256";
  Program program =
      tw({"run", "--peers", "2", "--out", path("out"), "--", "sh", "-c", toy + "; echo end"}, "run");
  ASSERT_TRUE(wait_for_round(1, 2)) << program.output();
  program.send(SIGHUP);
  EXPECT_EQ(program.wait(), kGoesOn) << program.output();
  EXPECT_FALSE(std::filesystem::is_empty(path("out/checkpoints")));
  for (const std::uint64_t id : {1, 2}) EXPECT_EQ(events_of(id, world::Phase::notice).size(), 1U) << id;
  EXPECT_THAT(program.output(), Not(HasSubstr("is killed")));
}

TEST_F(Run, passes_one_interrupt_on_and_ends_at_the_second) {
  {
    Program program = start({"--peers", "2"}, {rounds(100'000)});
    ASSERT_TRUE(wait_for_round(1, 2));
    program.send(SIGINT);
    EXPECT_EQ(program.wait(), 130);
    EXPECT_EQ(events_of(1, world::Phase::stop).size(), 1U) << "the peers left by themselves";
    EXPECT_EQ(summary_json()["identical"], true);
  }
  Program program = start({"--peers", "2", "--anew"}, {rounds(100'000)});
  ASSERT_TRUE(wait_for_round(3, 2));
  program.send(SIGINT);
  program.send(SIGINT);
  EXPECT_EQ(program.wait(10s), 130) << program.output();
  EXPECT_TRUE(processes_of(path("out")).empty());
}

TEST_F(Run, names_a_script_that_cannot_be_followed) {
  const std::pair<Words, std::string> cases[] = {
      {{"--peers", "3", "--kill", "4@2"}, "--kill 4@2: there are peers 1 to 3, for example --kill 3@2"},
      {{"--peers", "3", "--kill", "ledaer@2"}, "did you mean \"leader\""},
      {{"--peers", "3", "--join", "0"}, "--join 0"},
      {{"--peers", "64", "--join", "2"}, "64 peers and 1 joining ones"},
      {{"--stop", "1@2:never"}, "--stop 1@2:never: expected PEER@ROUND:SECONDS"},
      {{"--join", "127.0.0.1:1", "--kill", "1@2"}, "its peers are elsewhere"},
  };
  for (const auto& [words, expected] : cases) {
    Program program = start(words);
    EXPECT_EQ(program.wait(), 2) << expected;
    EXPECT_THAT(program.output(), HasSubstr(expected));
  }
  Program without = tw({"run", "--kill", "1@2", "--", TW_TOY}, "run");
  EXPECT_EQ(without.wait(), 2);
  EXPECT_THAT(without.output(), HasSubstr("give --out FOLDER"));
}

}  // namespace
}  // namespace tw
