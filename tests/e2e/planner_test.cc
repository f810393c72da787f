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

/// The small program, whose batch of 32 samples takes 4 ms at least, for so many rounds.
std::vector<std::string> toy_words(const std::string& rounds) {
  return {TW_TOY, "--work-ms", "4", "training.target_batch_size=64", "training.rounds=" + rounds};
}

TEST_F(PlannerTest, a_program_that_was_measured_here_is_predicted_elsewhere) {
  const auto profile = [&](std::vector<std::string> options, const std::string& rounds) {
    std::vector<std::string> words{"profile", "--out", path("own.yaml")};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    for (const std::string& word : toy_words(rounds)) words.push_back(word);
    return tw(words, "profile");
  };
  Program first = profile({"--name", "here", "--seconds", "0.3", "--data-mb-per-sample", "0.0005"}, "100000");
  ASSERT_EQ(first.wait(), 0) << first.output();
  EXPECT_THAT(first.output(), HasSubstr("here: "));
  Program second = profile({"--seconds", "60"}, "20");  // it ends by itself
  ASSERT_EQ(second.wait(), 0) << second.output();
  const auto model = plan::read_profile(path("own.yaml"), content_of(path("own.yaml")));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model.value().name, "toy");
  EXPECT_EQ(model.value().params_m, 0.001024);
  EXPECT_EQ(model.value().state_mb, 0.004096);
  EXPECT_GT(model.value().memory_mb, 5);
  EXPECT_THAT(model.value().command, HasSubstr("toy --work-ms 4"));
  ASSERT_TRUE(model.value().accumulating.contains("here"));
  ASSERT_TRUE(model.value().accumulating.contains("cpu")) << "the second machine is added";
  const double speed = model.value().accumulating.at("here").samples_per_s;
  EXPECT_LT(speed, 32 / 0.004);
  EXPECT_GT(speed, 100);
  EXPECT_FALSE(std::filesystem::exists("tradewind-checkpoints"));

  const std::string cluster =
      write("cluster.yaml", "model: own.yaml\ntbs: 100000\npeers: 2xhere@onprem:lab\n");
  const auto prediction = json_of({"predict", cluster, "--json"});
  EXPECT_NEAR(prediction["local_sps"].get<double>() / (2 * speed), 1, 1e-3);
  EXPECT_LT(prediction["throughput_sps"], prediction["local_sps"]);
  EXPECT_NEAR(prediction["usd_per_million_samples"].get<double>(), 1e6 * 0.0005 / 1e3 * 0.01, 1e-6);

  const std::string job = write("job.yaml", "model: own.yaml\ntbs: 100000\nsamples: 1e9\ngpus: [T4]\n");
  const auto plan = json_of({"plan", job, "--catalog", "built-in", "--out", path("out"), "--json"});
  EXPECT_THAT(plan["assumptions"].dump(), HasSubstr("nobody measured it there; assumed from "));
  EXPECT_THAT(plan["assumptions"].dump(), HasSubstr("on one rented hour: tw profile -o "));
}

TEST_F(PlannerTest, profile_names_what_it_cannot_measure) {
  const auto profile = [&](std::vector<std::string> options, const std::vector<std::string>& command) {
    options.insert(options.begin(), "profile");
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
    return tw(options, "profile");
  };
  for (const std::string name : {"a@b", "a@b:c;1xd", "my box"}) {
    Program odd = profile({"--name", name}, toy_words("20"));
    EXPECT_EQ(odd.wait(), 2);
    EXPECT_THAT(odd.output(), HasSubstr("--name " + name + ": expected a name that tw knows, or one with"));
  }
  const std::vector<std::string> unseen{"touch", path("ran")};
  Program nowhere = profile({"--out", path("no/such.yaml")}, unseen);
  EXPECT_EQ(nowhere.wait(), 2);
  EXPECT_THAT(nowhere.output(), HasSubstr("there is no folder " + path("no")));
  Program script = profile({"--out", write("p.py", "import torch\n")}, unseen);
  EXPECT_EQ(script.wait(), 2);
  EXPECT_THAT(script.output(), HasSubstr("expected a profile that tw profile wrote, or a new file"));
  EXPECT_FALSE(std::filesystem::exists(path("ran"))) << "it is not measured for nothing";
  Program failing = profile({}, {"sh", "-c", "echo no data here; exit 7"});
  EXPECT_EQ(failing.wait(), 7);
  EXPECT_THAT(failing.output(), HasSubstr("no data here"));
  EXPECT_THAT(failing.output(), HasSubstr("process 1 ended with exit code 7"));
  EXPECT_THAT(failing.output(), HasSubstr("nothing was measured"));
  Program brief = profile({}, toy_words("4"));
  EXPECT_EQ(brief.wait(), 1);
  EXPECT_THAT(brief.output(), HasSubstr("4 rounds were trained, and at least 6 are needed"));
  write("other.yaml", "model: m\nparams_m: 7\ntensors: 2\n");
  Program other = profile({"--out", path("other.yaml")}, toy_words("20"));
  EXPECT_EQ(other.wait(), 2);
  EXPECT_THAT(other.output(),
              HasSubstr("it is of a model with 7 million parameters, and this one has 0.001024"));
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

TEST_F(PlannerTest, a_prediction_has_no_total_where_a_price_is_missing_and_takes_offers_for_it) {
  const std::string cluster = write("cluster.yaml", "model: CONV\ntbs: 32768\npeers: 8xA10@lambda:east\n");
  Program unknown = tw({"predict", cluster, "--catalog", "built-in"}, "unknown");
  EXPECT_EQ(unknown.wait(), 0) << unknown.output();
  EXPECT_THAT(unknown.output(), testing::ContainsRegex("a million samples +unknown\n"));
  EXPECT_THAT(unknown.output(), HasSubstr("price: A10@lambda:east: no price is known"));
  const auto json = json_of({"predict", cluster, "--catalog", "built-in", "--json"});
  EXPECT_TRUE(json["usd_per_million_samples"].is_null() && json["usd_per_h"]["total"].is_null());
  EXPECT_THAT(json["assumptions"].dump(), HasSubstr("A10@lambda:east: no price is known"));
  const std::string offers =
      write("offers.csv", "provider,region,gpu,purchase,usd_per_h\nlambda,east,A10,on-demand,0.6\n");
  const auto priced = json_of({"predict", cluster, "--catalog", "built-in", "--offers", offers, "--json"});
  EXPECT_NEAR(priced["usd_per_h"]["vm"].get<double>(), 4.8, 1e-9);
  EXPECT_NEAR(priced["usd_per_million_samples"].get<double>(), 3.15, 0.05);
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
  EXPECT_THAT(json["next"].get<std::string>(), HasSubstr("tw up " + path("out/PLAN.yaml") + " "));
  const std::string plan = content_of(path("out/PLAN.yaml"));
  EXPECT_THAT(plan,
              HasSubstr("count: 17, role: peer, site: \"aws:us-east-1\", vm: \"g4dn.xlarge\", gpu: \"T4\""));
  EXPECT_THAT(plan,
              HasSubstr("count: 1, role: anchor, site: \"aws:us-east-1\", vm: \"c5.xlarge\", gpu: \"\""));
}

TEST_F(PlannerTest, a_point_that_no_front_has_is_refused_before_the_search_and_one_that_this_lacks_after_it) {
  const std::string job =
      write("job.yaml",
            "model: CONV\ntbs: 32768\nsamples: 1e6\ngoal: pareto\npeers_max: 1\ngpus: [T4]\n"
            "providers: [gcp]\nmode: sync\ncodec: fp16\n");
  for (const std::string point : {"0", "-1", "abc", "1.5", "99"}) {
    Program wrong = tw({"plan", job, "--point", point, "--out", path("out")}, "wrong");
    EXPECT_EQ(wrong.wait(), 2) << point;
    EXPECT_THAT(wrong.output(), HasSubstr("--point " + point + ": expected a whole number from 1 to 10"));
  }
  Program beyond = tw({"plan", job, "--point", "9", "--catalog", "built-in", "--out", path("out")}, "beyond");
  EXPECT_EQ(beyond.wait(), 2);
  EXPECT_THAT(beyond.output(), HasSubstr("--point 9: expected a row of the front, 1 to "));
  const std::string spot = write("spot.yaml", content_of(job) + "regions: [us-west]\npurchase: [spot]\n");
  Program only = tw({"plan", spot, "--point", "9", "--catalog", "built-in", "--out", path("out")}, "only");
  EXPECT_EQ(only.wait(), 2);
  EXPECT_THAT(only.output(), HasSubstr("--point 9: the front has one row; expected --point 1, or none"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(PlannerTest, what_a_job_leaves_open_is_chosen_and_reaches_the_run) {
  write("run.yaml", "training: {rounds: 8}\nprogram: {command: [train]}\n");
  const std::string job = write("job.yaml",
                                "model: CONV\nsamples: 50e6\ndeadline_h: 24\nrun: run.yaml\n"
                                "providers: [gcp, aws, azure, lambda]\ngpus: [T4, A10]\n");
  const auto json = json_of({"plan", job, "--catalog", "built-in", "--out", path("out"), "--json"});
  EXPECT_EQ(json["mode"], "streaming");
  EXPECT_THAT(json["averaging"]["reasons"][0].get<std::string>(),
              AllOf(HasSubstr("sync would wait "), HasSubstr(" a round hides all of it")));
  EXPECT_THAT(content_of(path("out/PLAN.yaml")), HasSubstr("- \"training.mode=streaming\""));
  Program up = tw({"up", path("out/PLAN.yaml"), "--on", "local", "--dry-run"});
  EXPECT_EQ(up.wait(), 0) << up.output();
  EXPECT_THAT(up.output(), HasSubstr("training.mode=streaming"));
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
  EXPECT_THAT(both.output(), HasSubstr("tw plan: --method does not go with --compare"));
}

}  // namespace
}  // namespace tw
