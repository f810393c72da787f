// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/scenario_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "sim/scenarios/scenario_fields.h"

namespace tw::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Scenario read(const std::string& text) {
  const Result<Scenario> scenario = parse_scenario(text, "folder/a.yaml");
  EXPECT_TRUE(scenario) << scenario.error().message;
  return scenario ? scenario.value() : Scenario{};
}

std::string complaint(const std::string& text) {
  const Result<Scenario> scenario = parse_scenario(text, "a.yaml");
  return scenario ? "none" : scenario.error().message;
}

TEST(ScenarioFile, is_the_default_scenario_when_empty) {
  const Scenario scenario = read("");
  EXPECT_EQ(scenario.name, "a");
  ASSERT_EQ(scenario.sites.size(), 1U);
  EXPECT_EQ(scenario.sites[0].peers, SiteSpec{}.peers);
  EXPECT_EQ(scenario.links.size(), 1U);
  EXPECT_TRUE(scenario.faults.empty());
  EXPECT_EQ(scenario.times.rounds, scenario.workload.rounds);
}

TEST(ScenarioFile, reads_sites_and_links_in_units_of_people) {
  const Scenario scenario = read(R"(
sites:
  - {name: us, peers: 4, samples_per_s: 30, up_mbit_s: [0.8, 80], down_mbit_s: 8, usd_per_h: 0.6}
  - {name: eu, peers: 3, egress_usd_per_gb: 0.08}
links:
  - {from: us, to: eu, latency_ms: [150, 300], jitter: 0.5, mbit_s: 4, window_kib: [16, 64]}
  - {latency_ms: 0.1}
)");
  ASSERT_EQ(scenario.sites.size(), 2U);
  const SiteSpec& us = scenario.sites[0];
  EXPECT_EQ(us.name, "us");
  EXPECT_EQ(us.peers, 4);
  EXPECT_EQ(us.samples_per_s, Between(30));
  EXPECT_EQ(us.up_bytes_per_s, Between(1e5, 1e7));
  EXPECT_EQ(us.down_bytes_per_s, Between(1e6));
  EXPECT_EQ(us.usd_per_h, 0.6);
  EXPECT_EQ(scenario.sites[1].egress_usd_per_gb, 0.08);
  ASSERT_EQ(scenario.links.size(), 2U);
  const LinkSpec& link = scenario.links[0];
  EXPECT_EQ(link.from + link.to, "useu");
  EXPECT_EQ(link.latency_s, Between(0.15, 0.3));
  EXPECT_EQ(link.jitter, Between(0.5));
  EXPECT_EQ(link.bytes_per_s, Between(5e5));
  EXPECT_EQ(link.window_bytes, Between(16384, 65536));
  EXPECT_EQ(scenario.links[1].latency_s, Between(1e-4));
  EXPECT_EQ(scenario.links[1].from + scenario.links[1].to, "");
}

TEST(ScenarioFile, reads_workload_faults_and_conditions) {
  const Scenario scenario = read(R"(
name: all
most_peers: 9
span_s: [10, 20]
cue_chance: 0.25
calm_limit_s: 60
keep_majority: false
patience_s: 5
rare_branches: false
checkers: [I1, L3]
workload:
  parameters: 100
  bulk_scale: 4
  segment_length: [8, 16]
  microbatch: 2
  microbatches: [8, 9]
  codecs: fp16
  optimizers: [lamb, sgd]
  norm_cap: 1000
  checkpoint_every: [0, 4]
  rounds: 20
faults:
  kill: 0.5
  stop: {chance: 0.25, times: [2, 3], lasts_s: [0.1, 120]}
  join: {times: 2}
)");
  EXPECT_EQ(scenario.name, "all");
  EXPECT_EQ(scenario.most_peers, 9);
  EXPECT_EQ(scenario.times.span_s, Between(10, 20));
  EXPECT_EQ(scenario.times.cue_chance, 0.25);
  EXPECT_EQ(scenario.times.rounds, 20U);
  EXPECT_EQ(scenario.calm_limit_s, 60);
  EXPECT_FALSE(scenario.keep_majority);
  EXPECT_EQ(scenario.patience_s, Between(5));
  EXPECT_FALSE(scenario.rare_branches);
  EXPECT_EQ(scenario.checkers, (std::vector<std::string>{"I1", "L3"}));
  const WorkloadSpec& workload = scenario.workload;
  EXPECT_EQ(workload.parameters, Between(100));
  EXPECT_EQ(workload.bulk_scale, 4);
  EXPECT_EQ(workload.segment_length, Between(8, 16));
  EXPECT_EQ(workload.microbatch, Between(2));
  EXPECT_EQ(workload.microbatches, Between(8, 9));
  EXPECT_EQ(workload.codecs, std::vector{codec::Codec::fp16});
  EXPECT_EQ(workload.optimizers, (std::vector{train::OptimizerKind::lamb, train::OptimizerKind::sgd}));
  EXPECT_EQ(workload.norm_cap, 1000);
  EXPECT_EQ(workload.checkpoint_every, Between(0, 4));
  EXPECT_EQ(workload.rounds, 20U);
  ASSERT_EQ(scenario.faults.size(), 3U);
  EXPECT_EQ(scenario.faults[0].kind, FaultKind::kill);
  EXPECT_EQ(scenario.faults[0].chance, 0.5);
  EXPECT_EQ(scenario.faults[1].kind, FaultKind::stop);
  EXPECT_EQ(scenario.faults[1].least, 2);
  EXPECT_EQ(scenario.faults[1].most, 3);
  EXPECT_EQ(scenario.faults[1].lasts_s, Between(0.1, 120));
  EXPECT_EQ(scenario.faults[2].chance, 1);
  EXPECT_EQ(scenario.faults[2].most, 2);
}

TEST(ScenarioFile, suggests_the_name_that_was_meant) {
  EXPECT_EQ(complaint("\nfaults: {kil: 1}"), "a.yaml:2: faults.kil: unknown fault; did you mean \"kill\"?");
  EXPECT_THAT(complaint("faults: {earthquake: 1}"),
              StartsWith("a.yaml:1: faults.earthquake: unknown fault; there are reset, black_hole, "));
  EXPECT_EQ(complaint("workloads: {}"), "a.yaml:1: workloads: unknown key; did you mean \"workload\"?");
  EXPECT_EQ(complaint("links:\n- {latency_s: 1}"),
            "a.yaml:2: links.latency_s: unknown key; did you mean \"latency_ms\"?");
  EXPECT_EQ(complaint("norm_cap: 3"), "a.yaml:1: norm_cap: unknown key; did you mean \"workload.norm_cap\"?");
  EXPECT_EQ(complaint("faults: {kill: {often: 3}}"),
            "a.yaml:1: faults.kill.often: unknown key; known here: chance, times, lasts_s");
  EXPECT_EQ(complaint("workload: {codecs: [fp32, fp6]}"),
            "a.yaml:1: workload.codecs: expected one or a list of fp32, fp16, bf16, int8, int4, found "
            "\"fp6\"; did you mean "
            "\"fp16\"?");
  EXPECT_THAT(complaint("checkers: [I1, I99]"), HasSubstr("found \"I99\"; there are I1, "));
  EXPECT_EQ(
      complaint("sites: [{name: east, peers: 2}]\nlinks: [{from: aest}]"),
      "a.yaml:2: links.from: expected the name of a site (east), found \"aest\"; did you mean \"east\"?");
  EXPECT_EQ(complaint("sites: [{name: east, peers: 2}]\nlinks: [{from: north}]"),
            "a.yaml:2: links.from: expected the name of a site (east), found \"north\"");
  EXPECT_EQ(complaint("sites: [{name: eastern, peers: 2}]\nlinks: [{to: eastren}]"),
            "a.yaml:2: links.to: expected the name of a site (eastern), found \"eastren\"; did you mean "
            "\"eastern\"?");
}

TEST(ScenarioFile, refuses_values_of_another_kind_or_out_of_range) {
  EXPECT_EQ(complaint("cue_chance: 1.5"),
            "a.yaml:1: cue_chance: expected a number from 0 to 1, found \"1.5\"");
  EXPECT_EQ(complaint("faults: {kill: often}"),
            "a.yaml:1: faults.kill: expected a number from 0 to 1, found \"often\"");
  EXPECT_EQ(complaint("faults: {kill: {times: [0, 2]}}"),
            "a.yaml:1: faults.kill.times: expected a whole number from 1 to 1000, or [least, most], found "
            "[0, 2]");
  EXPECT_EQ(complaint("workload: {microbatch: 1.5}"),
            "a.yaml:1: workload.microbatch: expected a whole number from 1 to 65536, or [least, most], found "
            "\"1.5\"");
  EXPECT_EQ(complaint("workload: {segment_length: 262145}"),
            "a.yaml:1: workload.segment_length: expected a whole number from 1 to 262144, or [least, most], "
            "found \"262145\"");
  EXPECT_EQ(complaint("workload: {rounds: 4}"),
            "a.yaml:1: workload.rounds: expected a whole number from 5 to 1000000, found \"4\"");
  EXPECT_EQ(complaint("sites: [{samples_per_s: 0}]"),
            "a.yaml:1: sites.samples_per_s: expected a number above 0, or [least, most], found \"0\"");
  EXPECT_EQ(complaint("links: [{mbit_s: [8, 4]}]"),
            "a.yaml:1: links.mbit_s: expected a number above 0, or [least, most], found [8, 4]; did you mean "
            "[4, 8]?");
  for (const char* value : {"[1, 2, 3]", "[]", "[[1, 2]]", "{a: 1}", ".nan", "", "1 s"}) {
    EXPECT_THAT(complaint(std::string("span_s: ") + value),
                StartsWith("a.yaml:1: span_s: expected a number from 0 to 10000000, or [least, most]"))
        << value;
  }
  EXPECT_EQ(complaint("keep_majority: 2"), "a.yaml:1: keep_majority: expected true or false, found \"2\"");
  EXPECT_EQ(complaint("name: []"), "a.yaml:1: name: expected a name, found []");
}

TEST(ScenarioFile, refuses_what_does_not_fit_together) {
  EXPECT_EQ(complaint("sites:\n- {name: a}\n- {name: a}"),
            "a.yaml:3: sites.name: expected a name of its own for each site, found \"a\" again");
  EXPECT_EQ(complaint("most_peers: 3"),
            "a.yaml: most_peers: expected at least the 8 peers of the sites, found \"3\"");
  EXPECT_EQ(complaint("sites: [{peers: 0}]"),
            "a.yaml: sites.peers: expected at least one peer at the beginning");
  EXPECT_EQ(complaint("calm_rounds: 5\nworkload: {rounds: 5}"),
            "a.yaml: calm_rounds: expected fewer than the 5 of workload.rounds, found \"5\"");
  EXPECT_EQ(complaint("calm_rounds: 4\nworkload: {rounds: 5}"), "none");
}

TEST(ScenarioFile, tells_all_that_is_wrong_at_once_and_places_errors_of_syntax) {
  EXPECT_EQ(complaint("span_s: 1\nspan_s: 2\nsites: {}\nfaults: [kill]\nworkload: 3"),
            "a.yaml:2: span_s: given twice\n"
            "a.yaml:3: sites: expected a list of sites\n"
            "a.yaml:4: faults: expected faults by name, such as kill: 0.5\n"
            "a.yaml:5: workload: expected keys with values");
  EXPECT_THAT(complaint("sites: [\nx: }"), StartsWith("a.yaml:2: "));
  EXPECT_EQ(complaint("- 1"), "a.yaml:1: expected keys with values");
  EXPECT_EQ(read_scenario("/nowhere/a.yaml").error().message,
            "/nowhere/a.yaml: cannot be read: No such file or directory");
}

TEST(ScenarioFile, has_examples_in_the_tests_folder_that_can_be_read) {
  std::set<std::string> names;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(TW_SOURCE_DIR) + "/tests/scenarios")) {
    const Result<Scenario> scenario = read_scenario(file.path().string());
    EXPECT_TRUE(scenario) << scenario.error().message;
    names.insert(file.path().stem().string());
  }
  EXPECT_THAT(names, testing::IsSupersetOf(
                         {"storm", "kills", "partitions", "lost_majority", "disks", "hostile", "spot"}));
}

TEST(ScenarioReference, has_a_row_for_every_key_and_every_fault) {
  const std::string text = scenario_reference();
  EXPECT_THAT(text, HasSubstr("| `links[].latency_ms` | a number from 0 to 60000, or [least, most] | "
                              "`[0.1, 150]` | of a path, one way |"));
  EXPECT_THAT(text, HasSubstr("| `workload.codecs` | one or a list of fp32, fp16, bf16, int8, int4 | "
                              "`[fp32, fp16, bf16, int8, int4]` |"));
  EXPECT_THAT(text, HasSubstr("| `kill` | SIGKILL |"));
  EXPECT_THAT(text, HasSubstr("| `forge_mean` | "));
}

TEST(ScenarioReference, is_what_the_documentation_says) {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/docs/simulation.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(text.ends_with(scenario_reference())) << "docs/simulation.md should end with:\n"
                                                    << scenario_reference();
}

}  // namespace
}  // namespace tw::sim
