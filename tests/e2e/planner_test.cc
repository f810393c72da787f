// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "e2e/program.h"
#include "plan/input/model_profile_yaml.h"

namespace tw {
namespace {

using testing::HasSubstr;

class PlannerTest : public ProgramTest {
 protected:
  nlohmann::json json_of(std::vector<std::string> arguments) const {
    Program program = tw(std::move(arguments), "json");
    EXPECT_EQ(program.wait(), 0) << program.output();
    return nlohmann::json::parse(program.output(), nullptr, false);
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
};

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST_F(PlannerTest, a_model_that_was_measured_here_is_predicted_elsewhere) {
  Program profile = tw({"profile", "examples/mnist.yaml", "--name", "here", "--seconds", "0.3",
                        "--data-mb-per-sample", "0.0005", "--out", path("own.yaml")});
  ASSERT_EQ(profile.wait(), 0) << profile.output();
  const auto model = plan::read_profile(path("own.yaml"), content_of(path("own.yaml")));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model.value().name, "mnist-cnn");
  EXPECT_NEAR(model.value().params_m, 0.108, 0.001);
  EXPECT_EQ(model.value().tensors, 8);
  EXPECT_EQ(model.value().microbatch, 64);
  ASSERT_TRUE(model.value().accumulating.contains("here"));
  const double speed = model.value().accumulating.at("here").samples_per_s;
  EXPECT_GT(speed, 0);

  const std::string cluster =
      write("cluster.yaml", "profile: own.yaml\ntbs: 100000\npeers: 2xhere@onprem:lab\n");
  const auto prediction = json_of({"predict", cluster, "--json"});
  EXPECT_NEAR(prediction["local_sps"].get<double>() / (2 * speed), 1, 1e-3);
  EXPECT_LT(prediction["throughput_sps"], prediction["local_sps"]);
  EXPECT_NEAR(prediction["usd_per_million_samples"].get<double>(), 1e6 * 0.0005 / 1e3 * 0.01, 1e-6);
}

TEST_F(PlannerTest, profile_names_what_it_cannot_measure) {
  for (const std::string name : {"a@b", "a@b:c;1xd"}) {
    Program odd = tw({"profile", "examples/mnist.yaml", "--name", name});
    EXPECT_EQ(odd.wait(), 2);
    EXPECT_THAT(odd.output(), HasSubstr("--name " + name + ": expected a word"));
  }
  Program nowhere = tw({"profile", "examples/mnist.yaml", "--seconds", "0.1", "--out", path("no/such.yaml")});
  EXPECT_EQ(nowhere.wait(), 1);
  EXPECT_THAT(nowhere.output(), HasSubstr("cannot be written"));
}

TEST_F(PlannerTest, a_prediction_has_the_keys_that_scripts_read) {
  const std::string cluster =
      write("cluster.yaml", "model: CONV\ntbs: 32768\npeers: 4xT4@gc:us;2xA10@lambda:us-west\n");
  const auto json = json_of({"predict", cluster, "--json"});
  EXPECT_EQ(keys_of(json),
            (std::set<std::string>{"throughput_sps", "local_sps", "calc_s", "comm_s", "granularity",
                                   "sent_mb_per_peer_round", "usd_per_h", "usd_per_million_samples", "limit",
                                   "round_s", "overlap_s", "ranges", "reads", "assumptions"}));
  EXPECT_EQ(keys_of(json["usd_per_h"]), (std::set<std::string>{"vm", "egress", "data", "total"}));
  for (const auto& [key, range] : json["ranges"].items()) {
    if (key == "usd_per_h") continue;
    EXPECT_LE(range[0], json[key]) << key;
    EXPECT_GE(range[1], json[key]) << key;
  }
}

TEST_F(PlannerTest, offers_are_listed_as_json) {
  const auto offers =
      json_of({"catalog", "list", "--gpu", "t4", "--spot", "--catalog", "built-in", "--json"});
  ASSERT_GT(offers.size(), 3U);
  double before = 0;
  for (const auto& offer : offers) {
    EXPECT_EQ(offer["gpu"], "T4");
    EXPECT_EQ(offer["purchase"], "spot");
    EXPECT_EQ(offer["old"], true);
    EXPECT_GT(offer["age_h"], 24 * 365);
    const double usd = offer["usd_per_h"].get<double>() / offer["gpus"].get<double>();
    EXPECT_GE(usd, before);
    before = usd;
  }
  Program both = tw({"catalog", "list", "--csv", "--json"});
  EXPECT_EQ(both.wait(), 2);
  EXPECT_THAT(both.output(), HasSubstr("--csv, --json: give one of them"));
}

/// DeepVM's own market, and the price limit of its evaluation.
constexpr const char* kDeepVmJob =
    "model: CONV\ntbs: 32768\nsamples: 20e6\nproviders: [aws]\nregions: [us-east-1]\n"
    "gpus: [M60, T4, A10G]\npeers_max: 32\ndeepvm: {usd_per_h: 3, checkpoint_gib: 2}\n";

TEST_F(PlannerTest, a_publications_choice_is_a_plan_like_any_other) {
  const std::string job = write("job.yaml", kDeepVmJob);
  const auto json =
      json_of({"plan", job, "--method", "deepvm", "--catalog", "built-in", "--out", path("out"), "--json"});
  EXPECT_EQ(json["chosen"]["peers"], "17xT4@aws:us-east-1;1xc5.xlarge@aws:us-east-1");
  EXPECT_THAT(json["method"].get<std::string>(), HasSubstr("deepvm: FLOPP x 17"));
  const std::string plan = content_of(path("out/PLAN.yaml"));
  EXPECT_THAT(plan,
              HasSubstr("count: 17, role: peer, site: \"aws:us-east-1\", vm: \"g4dn.xlarge\", gpu: \"T4\""));
  EXPECT_THAT(plan,
              HasSubstr("count: 1, role: anchor, site: \"aws:us-east-1\", vm: \"c5.xlarge\", gpu: \"\""));
}

TEST_F(PlannerTest, all_methods_are_compared_by_one_model_and_nothing_is_written) {
  const std::string job = write("job.yaml", kDeepVmJob);
  const auto json =
      json_of({"plan", job, "--compare", "--catalog", "built-in", "--out", path("out"), "--json"});
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  ASSERT_EQ(json["methods"].size(), 5U);
  std::set<std::string> names;
  for (const auto& row : json["methods"]) {
    names.insert(row["method"]);
    ASSERT_TRUE(row["has_choice"]) << row;
    EXPECT_GE(row["usd"].get<double>(), json["tradewind"]["usd"].get<double>() * 0.9999) << row["method"];
    EXPECT_FALSE(row["why_it_lost"].get<std::string>().empty());
    EXPECT_FALSE(row["chosen_by"].get<std::string>().empty());
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"deepvm", "spotdnn", "transient", "cost-first", "performance-first"}));
}

TEST_F(PlannerTest, a_method_that_is_none_or_has_no_choice_is_an_error_of_one_line) {
  const std::string job = write("job.yaml", std::string(kDeepVmJob) + "deadline_h: 0.01\n");
  Program unknown = tw({"plan", job, "--method", "deep"});
  EXPECT_EQ(unknown.wait(), 2);
  EXPECT_THAT(unknown.output(), HasSubstr("--method deep: expected one of deepvm, spotdnn"));
  Program late = tw({"plan", job, "--method", "spotdnn", "--catalog", "built-in", "--out", path("out")});
  EXPECT_EQ(late.wait(), 1);
  EXPECT_THAT(late.output(), HasSubstr("spotdnn: no run of neighbours"));
  Program both = tw({"plan", job, "--method", "spotdnn", "--compare"});
  EXPECT_EQ(both.wait(), 2);
  EXPECT_THAT(both.output(), HasSubstr("expected at most one of them"));
}

}  // namespace
}  // namespace tw
