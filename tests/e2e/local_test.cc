// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/prng.h"
#include "e2e/program.h"
#include "host/files_disk.h"
#include "sync/checkpoint.h"
#include "train/run/run_facts.h"
#include "train/run/run_file_yaml.h"

namespace tw {
namespace {

/// Parameters of mnist-cnn: two convolutions and two linear layers.
constexpr std::uint64_t kParameters = 16 * 25 + 16 + 32 * 16 * 9 + 32 + 128 * 800 + 128 + 10 * 128 + 10;

struct LocalRun {
  std::uint64_t rounds = 8;
  std::uint64_t batch = 256;
  std::uint64_t microbatch = 32;
  std::string optimizer = "adamw";
  bool exact_batches = false;
};

/// Runs of `tw local`.
class Local : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_data("train", 512);
    write_data("test", 64);
  }

  /// Ten classes, each a bright square at its own place, in noise: learnable within a few rounds.
  void write_data(const std::string& name, std::uint32_t samples) const {
    constexpr std::uint32_t kSide = 28;
    Prng prng(samples);
    std::ofstream inputs(path(name + "-x"), std::ios::binary);
    std::ofstream targets(path(name + "-y"), std::ios::binary);
    write_head(inputs, {samples, kSide, kSide});
    write_head(targets, {samples});
    for (std::uint32_t sample = 0; sample < samples; ++sample) {
      const std::uint32_t target = sample % 10;
      targets.put(static_cast<char>(target));
      for (std::uint32_t pixel = 0; pixel < kSide * kSide; ++pixel) {
        const bool bright = pixel / kSide / 6 == target / 4 && pixel % kSide / 7 == target % 4;
        inputs.put(static_cast<char>(prng.below(64) + (bright ? 160 : 0)));
      }
    }
  }

  static void write_head(std::ofstream& file, const std::vector<std::uint32_t>& sizes) {
    file << '\0' << '\0' << '\x08' << static_cast<char>(sizes.size());
    for (const std::uint32_t size : sizes)
      for (const int shift : {24, 16, 8, 0}) file.put(static_cast<char>(size >> shift));
  }

  /// A run file; extra: further lines of YAML.
  std::string write_run(const LocalRun& run, const std::string& extra = "",
                        const std::string& name = "run.yaml") const {
    std::ofstream(path(name))
        << "model: mnist-cnn\ndata:\n  train_inputs: train-x\n  train_targets: train-y\n"
        << "  test_inputs: test-x\n  test_targets: test-y\n"
        << "training:\n  target_batch_size: " << run.batch << "\n  microbatch: " << run.microbatch
        << "\n  rounds: " << run.rounds
        << "\n  codec: fp32\n  exact_batches: " << (run.exact_batches ? "true" : "false")
        << "\noptimizer:\n  kind: " << run.optimizer
        << "\nschedule:\n  learning_rate: " << (run.optimizer == "sgd" ? "0.003" : "0.001") << "\n"
        << extra;
    return path(name);
  }

  int local(const std::string& run_file, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"local", run_file, "--out", path("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Program program = tw(std::move(arguments));
    return program.wait(120s);
  }

  /// Parameters of the newest checkpoint in a folder.
  std::vector<float> parameters(const std::string& run_file, const std::string& folder) const {
    const auto run = train::read_run_file(run_file);
    if (!run) return {};
    host::DiskFiles files;
    sync::CheckpointStore store(files, {.folder = folder, .keep = 2, .unique = "test"});
    auto loaded = store.load_newest(run_digest(run.value(), kParameters));
    EXPECT_TRUE(loaded) << loaded.error().message;
    if (!loaded || !loaded.value()) return {};
    std::vector<std::byte> bytes;
    for (const Blob& chunk : loaded.value()->image.chunks)
      bytes.insert(bytes.end(), chunk.bytes().begin(), chunk.bytes().end());
    std::vector<float> values(kParameters);
    EXPECT_GE(bytes.size(), kParameters * sizeof(float));
    std::memcpy(values.data(), bytes.data(), kParameters * sizeof(float));
    return values;
  }

  static double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
      size += std::pow(static_cast<double>(a[i]), 2);
    }
    return size > 0 ? std::sqrt(difference / size) : 1;
  }
};

TEST_F(Local, three_peers_end_with_the_same_parameters) {
  ASSERT_EQ(local(write_run({.rounds = 8}), {"--peers", "3"}), 0);
  const auto json = summary_json();
  for (const char* key : {"rounds", "samples", "samples_per_s", "test_accuracy", "loss", "granularity",
                          "calc_s", "comm_s", "peers", "identical", "lost", "joined"})
    ASSERT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["rounds"], 8);
  EXPECT_EQ(json["samples"], 8 * 256);
  EXPECT_EQ(json["identical"], true);
  EXPECT_GT(json["samples_per_s"], 0);
  EXPECT_GT(json["granularity"], 0);
  EXPECT_TRUE(json["lost"].empty());
  EXPECT_TRUE(json["joined"].empty());
  ASSERT_EQ(json["peers"].size(), 3U);
  std::uint64_t samples = 0;
  for (const auto& peer : json["peers"]) {
    EXPECT_EQ(peer["digest"], json["peers"][0]["digest"]);
    EXPECT_EQ(peer["digest"].get<std::string>().size(), 32U);
    EXPECT_GT(peer["bytes_sent"], 0);
    EXPECT_GT(peer["bytes_received"], 0);
    samples += peer["samples"].get<std::uint64_t>();
  }
  EXPECT_EQ(samples, 8U * 256);
}

TEST_F(Local, goes_on_without_a_killed_peer_and_loses_no_sample) {
  ASSERT_EQ(local(write_run({.rounds = 10, .exact_batches = true}), {"--peers", "3", "--kill", "2@3"}), 0);
  const auto json = summary_json();
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["rounds"], 10);
  EXPECT_EQ(json["samples"], 10 * 256);
  ASSERT_EQ(json["lost"].size(), 1U);
  EXPECT_EQ(json["lost"][0]["peer"], 2);
  EXPECT_GE(json["lost"][0]["round"], 3);
  ASSERT_TRUE(json["lost"][0]["detected_s"].is_number());
  EXPECT_LT(json["lost"][0]["detected_s"], 3.0);
  EXPECT_EQ(json["peers"][0]["digest"], json["peers"][2]["digest"]);
}

TEST_F(Local, goes_on_without_its_leader_and_loses_no_sample) {
  ASSERT_EQ(local(write_run({.rounds = 10}), {"--peers", "3", "--kill", "leader@3"}), 0);
  const auto json = summary_json();
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["rounds"], 10);
  EXPECT_GE(json["samples"], 10 * 256 - 128) << "half of a batch at most is left to the next round";
  EXPECT_LE(json["samples"], 10 * 256);
  ASSERT_EQ(json["lost"].size(), 1U);
  const std::uint64_t dead = json["lost"][0]["peer"];
  std::vector<std::string> digests;
  for (const auto& peer : json["peers"])
    if (peer["id"] != dead) digests.push_back(peer["digest"]);
  ASSERT_EQ(digests.size(), 2U);
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(Local, lets_another_peer_join_which_then_contributes) {
  // Long enough for a process to start while it goes on.
  ASSERT_EQ(local(write_run({.rounds = 120}), {"--peers", "2", "--join", "2"}), 0);
  const auto json = summary_json();
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["samples"], 120 * 256);
  ASSERT_EQ(json["joined"].size(), 1U);
  EXPECT_EQ(json["joined"][0]["peer"], 3);
  EXPECT_TRUE(json["joined"][0]["seconds"].is_number());
  ASSERT_EQ(json["peers"].size(), 3U);
  EXPECT_GT(json["peers"][2]["samples"], 0);
  EXPECT_EQ(json["peers"][2]["digest"], json["peers"][0]["digest"]);
}

TEST_F(Local, four_peers_compute_what_one_computes_even_when_one_of_them_is_killed) {
  const LocalRun run{.rounds = 50, .batch = 128, .microbatch = 16, .optimizer = "sgd", .exact_batches = true};
  const std::string file = write_run(run);
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--set", "checkpoint.folder=" + path(name), "--set", "checkpoint.every=50"});
    EXPECT_EQ(local(file, std::move(more)), 0) << name;
    return parameters(file, path(name));
  };
  const auto alone = train("alone", {"--peers", "1"});
  const auto together = train("together", {"--peers", "4"});
  const auto bereaved = train("bereaved", {"--peers", "4", "--kill", "2@20"});
  EXPECT_EQ(summary_json()["lost"].size(), 1U);
  ASSERT_EQ(alone.size(), kParameters);
  EXPECT_LT(distance(alone, together), 1e-4);
  EXPECT_LT(distance(alone, bereaved), 1e-4);
}

TEST_F(Local, prints_json_on_stdout_and_everything_else_on_stderr) {
  Program program(
      {"local", write_run({.rounds = 2}), "--peers", "1", "--out", path("out"), "--json"},
      {.output = path("stdout.txt"), .separate_errors = path("stderr.txt"), .largest_file_bytes = {}});
  ASSERT_EQ(program.wait(), 0);
  const auto json = nlohmann::json::parse(program.output(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << program.output();
  EXPECT_EQ(json, summary_json());
  EXPECT_NE(content_of(path("stderr.txt")).find("round 2"), std::string::npos);
}

TEST_F(Local, replaces_a_run_of_before_but_no_folder_with_other_things) {
  const std::string run = write_run({.rounds = 2});
  ASSERT_EQ(local(run, {"--peers", "2"}), 0);
  ASSERT_EQ(local(run, {"--peers", "1"}), 0);
  EXPECT_EQ(summary_json()["peers"].size(), 1U) << "the logs of the first run are gone";
  std::ofstream(path("out/thesis.tex")) << "years of work";
  Program refused = tw({"local", run, "--peers", "1", "--out", path("out")});
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_TRUE(refused.says("thesis.tex")) << refused.output();
  EXPECT_TRUE(std::filesystem::exists(path("out/events-1.jsonl")));
}

/// Processes whose command line names the folder of this test.
std::vector<std::string> processes_of(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos || pid == std::to_string(getpid())) continue;
    const std::string state = content_of("/proc/" + pid + "/stat");
    if (state.find(") Z ") != std::string::npos) continue;
    if (content_of("/proc/" + pid + "/cmdline").find(folder) != std::string::npos) found.push_back(pid);
  }
  return found;
}

TEST_F(Local, leaves_no_process_even_when_it_is_killed) {
  Program program = tw({"local", write_run({.rounds = 100'000}), "--peers", "3", "--out", path("out")});
  ASSERT_TRUE(wait_for_round(1, 2));
  EXPECT_EQ(processes_of(path("out")).size(), 4U);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_TRUE(wait_until([&] { return processes_of(path("out")).empty(); }, 5s));

  Program report = tw({"report", path("out")}, "report");
  EXPECT_EQ(report.wait(), 0) << "what is left can be read";
  EXPECT_TRUE(report.says("identical on all peers")) << report.output();
}

TEST_F(Local, passes_one_interrupt_on_and_kills_at_the_second) {
  const std::string run = write_run({.rounds = 100'000});
  {
    Program program = tw({"local", run, "--peers", "2", "--out", path("out")});
    ASSERT_TRUE(wait_for_round(1, 2));
    program.send(SIGINT);
    EXPECT_EQ(program.wait(), 130);
    EXPECT_EQ(events_of(1, world::Phase::stop).size(), 1U) << "the peers left by themselves";
    EXPECT_EQ(summary_json()["identical"], true);
  }
  Program program = tw({"local", run, "--peers", "2", "--out", path("out")});
  ASSERT_TRUE(wait_for_round(1, 2));
  program.send(SIGINT);
  program.send(SIGINT);
  EXPECT_EQ(program.wait(5s), 130);
  EXPECT_TRUE(processes_of(path("out")).empty());
}

}  // namespace
}  // namespace tw
