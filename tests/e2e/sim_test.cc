// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace tw {
namespace {

using Json = nlohmann::json;

class Sim : public ProgramTest {
 protected:
  /// Four peers and eight rounds; extra: further lines of YAML.
  std::string write_scenario(const std::string& extra, const std::string& name = "small.yaml") const {
    std::ofstream(path(name)) << "sites: [{peers: 4}]\n" << extra;
    return path(name);
  }

  std::string kills() const {
    return write_scenario("workload: {rounds: 8}\nfaults: {kill: 0.9, join: 0.5}\n");
  }

  /// 200 rounds do not fit into the time that they may take.
  std::string hurried() const {
    return write_scenario("workload: {rounds: 200}\nspan_s: 0\ncalm_limit_s: 1\n");
  }

  /// What a command prints on stdout; its exit code must be this.
  std::string run(const std::vector<std::string>& arguments, int code) const {
    Program program(arguments, {.output = path("stdout"), .separate_errors = path("stderr.txt")});
    EXPECT_EQ(program.wait(), code) << content_of(path("stderr.txt"));
    return program.output();
  }
};

TEST_F(Sim, tells_what_many_seeds_came_to_the_same_with_any_number_of_jobs) {
  const std::string scenario = kills();
  Json one = Json::parse(run({"sim", scenario, "--seeds", "1..40", "--jobs", "1", "--json"}, 0));
  Json two = Json::parse(run({"sim", scenario, "--seeds", "1..40", "--jobs", "2", "--json"}, 0));
  for (const char* key : {"seeds", "failures", "events", "events_per_s", "simulated_s", "faults"}) {
    EXPECT_TRUE(one.contains(key)) << key;
  }
  EXPECT_EQ(one["seeds"], 40);
  EXPECT_EQ(one["failures"], Json::array());
  EXPECT_EQ(one["faults"].size(), 2U);
  EXPECT_EQ(one["faults"][0]["name"], "kill");
  EXPECT_GT(one["faults"][0]["fired"], 10);
  EXPECT_LE(one["faults"][0]["fired"], one["faults"][0]["drawn"]);
  EXPECT_GT(one["events_per_s"], 0);
  one.erase("events_per_s");
  two.erase("events_per_s");
  EXPECT_EQ(one, two);
}

TEST_F(Sim, prints_the_coverage_of_faults) {
  const std::string text = run({"sim", kills(), "--seeds", "1..40"}, 0);
  EXPECT_NE(text.find("failed         none"), std::string::npos) << text;
  EXPECT_NE(text.find("2 of the 2 kinds of the scenario fired"), std::string::npos) << text;
}

TEST_F(Sim, shows_a_violation_with_its_seed_and_how_to_see_it_again) {
  const std::string scenario = hurried();
  const Json json = Json::parse(run({"sim", scenario, "--seeds", "7..8", "--json"}, 1));
  ASSERT_GE(json["failures"].size(), 2U);
  EXPECT_EQ(json["failures"][0]["seed"], 7);
  EXPECT_EQ(json["failures"][0]["checker"], "L1");
  EXPECT_NE(json["failures"][0]["message"], "");
  const std::string text = run({"sim", scenario, "--seeds", "7..8"}, 1);
  EXPECT_NE(text.find("again: tw sim " + scenario + " --seed 7 --trace\n"), std::string::npos) << text;
  EXPECT_NE(run({"sim", scenario, "--seed", "7", "--trace"}, 1).find("L1: "), std::string::npos);
}

TEST_F(Sim, replays_a_seed_exactly_and_writes_the_event_logs_of_a_real_run) {
  const std::string scenario = kills();
  const std::string first = run({"sim", scenario, "--seed", "3", "--trace", "--out", path("out")}, 0);
  const monitor::Summary summary_of_first = summary();
  EXPECT_EQ(run({"sim", scenario, "--seed", "3", "--trace", "--out", path("out")}, 0), first);
  EXPECT_EQ(summary().board.peers, summary_of_first.board.peers);
  EXPECT_EQ(summary().rounds, 8U);
  EXPECT_TRUE(summary().identical) << summary().difference;
  EXPECT_GE(summary().board.peers.size(), 4U);
  EXPECT_NE(run({"report", path("out")}, 0).find("identical on all peers in every round"), std::string::npos);
  std::ofstream(path("out/thesis.txt")) << "mine";
  EXPECT_EQ(run({"sim", scenario, "--seed", "3", "--trace", "--out", path("out")}, 2), "");
  EXPECT_EQ(content_of(path("out/thesis.txt")), "mine");
}

TEST_F(Sim, refuses_wrong_arguments_and_scenarios_with_what_was_expected) {
  const std::string scenario = kills();

  const struct {
    std::vector<std::string> arguments;
    std::string part;
  } table[] = {
      {{"sim"}, "SCENARIO.yaml"},
      {{"sim", path("none.yaml")}, "none.yaml: cannot be read"},
      {{"sim", scenario, "--seeds", "100"}, "--seeds 1..100"},
      {{"sim", scenario, "--seeds", "9..1"}, "did you mean --seeds 1..9?"},
      {{"sim", scenario, "--seed", "x"}, "--seed x: expected a whole number"},
      {{"sim", scenario, "--seed", "1", "--seeds", "1..2"}, "give one of the two"},
      {{"sim", scenario, "--trace"}, "add --seed N"},
      {{"sim", scenario, "--out", path("out")}, "add --seed N --trace"},
      {{"sim", scenario, "--jobs", "0"}, "--jobs 0: expected a whole number from 1"},
      {{"sim", scenario, "--job", "2"}, "did you mean \"--jobs"},
      {{"sim", write_scenario("faults: {kil: 1}", "typo.yaml")},
       "typo.yaml:2: faults.kil: unknown fault; did you mean \"kill\"?"},
  };

  for (const auto& [arguments, part] : table) {
    EXPECT_EQ(run(arguments, 2), "");
    EXPECT_NE(content_of(path("stderr.txt")).find(part), std::string::npos) << content_of(path("stderr.txt"));
  }
}

TEST_F(Sim, tells_what_there_is_when_it_is_interrupted) {
  Program program({"sim", kills(), "--seeds", "1..100000000", "--json"},
                  {.output = path("stdout"), .separate_errors = path("stderr.txt")});
  ASSERT_TRUE(wait_until(
      [&] { return content_of(path("stderr.txt")).find(" of 100000000 seeds") != std::string::npos; }));
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_GT(Json::parse(program.output())["seeds"], 0);
}

}  // namespace
}  // namespace tw
