// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace tw {
namespace {

/// A run that ends, and the plan that it followed.
class Plan : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ASSERT_EQ(
        tw({"run", write_run({.rounds = 8}), "--out", path("out"), "--peers", "2", "--", TW_TOY}).wait(), 0);
    write("model.yaml",
          "model: small\nparams_m: 0.1\ntensors: 8\nmicrobatch: 32\naccumulating: {T4: 500, A10: 1000}\n");
    write("offers.csv",
          "provider,region,gpu,gpus,purchase,usd_per_h\nlambda,us,T4,1,on-demand,1\n"
          "lambda,us,A10,1,on-demand,0.2\n");
    write("PLAN.yaml",
          "job: job.yaml\npeers:\n"
          "  - {site: \"lambda:us\", vm: \"\", gpu: \"T4\", count: 2, purchase: on-demand, "
          "usd_per_h: 1}\n");
  }

  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }

  nlohmann::json next(const std::string& samples) {
    write("job.yaml",
          "model: model.yaml\ntbs: 256\nsamples: " + samples + "\nproviders: [lambda]\npeers_max: 4\n");
    Program program({"replan", path("PLAN.yaml"), path("out"), "--offers", path("offers.csv"), "--json"},
                    {.output = path("plan.json"), .separate_errors = path("errors.txt")});
    EXPECT_EQ(program.wait(60s), 0) << content_of(path("errors.txt"));
    return nlohmann::json::parse(content_of(path("plan.json")), nullptr, false);
  }
};

TEST_F(Plan, a_run_under_way_is_planned_again_from_its_logs) {
  const auto json = next("1e7");
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["samples"], 8 * 256);
  EXPECT_EQ(json["samples_left"], 1e7 - 8 * 256);
  EXPECT_EQ(json["peers"], 2);
  EXPECT_GT(json["measured_sps"], 0);
  EXPECT_GT(json["measured_peers"], 0);
  EXPECT_GT(json["usd_spent"], 0);
  EXPECT_EQ(json["advice"], "change");  // an A10 is faster, at a fifth of the price
  EXPECT_EQ(json["add"][0]["gpu"], "A10");
  EXPECT_EQ(json["drop"][0]["count"], 2);
  EXPECT_EQ(next("2048")["advice"], "done");
}

}  // namespace
}  // namespace tw
