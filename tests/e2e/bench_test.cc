// SPDX-License-Identifier: Apache-2.0
#include "e2e/program.h"

namespace tw {
namespace {

class Bench : public ProgramTest {
 protected:
  nlohmann::json reduce(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench", "reduce", "--json", "--rounds", "3", "--warm-up", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Program program(
        arguments,
        {.output = path("stdout.txt"), .separate_errors = path("stderr.txt"), .largest_file_bytes = {}});
    EXPECT_EQ(program.wait(), 0) << content_of(path("stderr.txt"));
    return nlohmann::json::parse(program.output(), nullptr, false);
  }
};

TEST_F(Bench, measures_the_whole_thing_and_counts_its_bytes) {
  const auto json = reduce({"--peers", "3", "--bytes", "3MiB", "--codec", "fp16"});
  ASSERT_TRUE(json.is_object()) << content_of(path("stdout.txt"));
  for (const char* key : {"seconds", "bound_s", "bound_share", "bytes_sent_per_peer", "cpu_s_per_gb",
                          "contributions_s", "own_s_per_gb", "memory_vectors"}) {
    ASSERT_TRUE(json[key].is_number()) << key;
    EXPECT_GT(json[key], 0) << key;
  }
  EXPECT_EQ(json["identical"], true);
  EXPECT_TRUE(json["vs"].empty());
  EXPECT_FALSE(json.contains("disturbed_s"));
  EXPECT_EQ(json["topology"], "loopback");
  // Each of three sends two thirds of its vector, and its third of the mean twice: 4/3 of 1.5 MiB.
  const double payload = 2.0 * 1024 * 1024;
  EXPECT_GT(json["bytes_sent_per_peer"], payload);
  EXPECT_LT(json["bytes_sent_per_peer"], 1.02 * payload);
  ASSERT_EQ(json["bytes_sent"].size(), 3U);
}

TEST_F(Bench, disturbs_a_round_and_tells_how_long_it_took) {
  const auto json = reduce({"--peers", "3", "--bytes", "8MiB", "--kill", "leader@0.5"});
  ASSERT_TRUE(json.is_object()) << content_of(path("stdout.txt"));
  EXPECT_EQ(json["identical"], true);
  EXPECT_GT(json["undisturbed_s"], 0);
  EXPECT_GT(json["disturbed_s"], 0);
}

TEST_F(Bench, tells_rounds_under_trouble_and_after_it) {
  const auto json = reduce({"--peers", "3", "--bytes", "1MiB", "--disturb", "stop@2s"});
  ASSERT_TRUE(json.is_object()) << content_of(path("stdout.txt"));
  EXPECT_EQ(json["identical"], true);
  const auto& trouble = json["trouble"];
  ASSERT_TRUE(trouble.is_object());
  EXPECT_EQ(trouble["what"], "--disturb stop@2s");
  EXPECT_GT(trouble["before_s"], 0);
  EXPECT_GE(trouble["under_s"].size(), 1U);
  ASSERT_GE(trouble["after_s"].size(), 6U);
  for (const auto& seconds : trouble["after_s"]) EXPECT_GT(seconds, 0);
}

TEST_F(Bench, names_what_is_wrong) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--peers", "1"}, "--peers 1: expected a whole number from 2 to 64"},
      {{"--bytes", "3"}, "--bytes 3: expected a size such as 64MiB"},
      {{"--codec", "fp33"}, "did you mean \"fp32\"?"},
      {{"--kill", "3@0.5"}, "there are peers 1 to 2"},
      {{"--kill", "1@0.5", "--stop", "2@0.5"}, "expected one of them"},
      {{"--vs", "nccl"}, "there is no nccl"},
      {{"--piers", "2"}, "tw bench reduce: unknown argument --piers; did you mean \"--peers\"?"},
  };
  for (const auto& [more, message] : cases) {
    std::vector<std::string> arguments = {"bench", "reduce"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Program program = tw(arguments);
    EXPECT_EQ(program.wait(), 2);
    EXPECT_TRUE(program.says(message)) << program.output();
  }
}

}  // namespace
}  // namespace tw
