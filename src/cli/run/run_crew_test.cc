// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_crew.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

TEST(RunPlan, of_a_run_that_goes_on_and_begins_anew_is_refused) {
  RunArguments arguments;
  arguments.words = {"true"};
  arguments.links.rejoin = true;
  EXPECT_TRUE(plan_run(arguments));
  arguments.links.anew = true;
  const auto plan = plan_run(arguments);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "--rejoin and --anew: the run goes on or begins anew; give one of the two");
}

TEST(RunPlan, names_what_is_wrong_before_it_starts_a_process) {
  const auto refused = [](void (*give)(RunArguments & arguments)) {
    RunArguments arguments;
    arguments.words = {"true"};
    give(arguments);
    const auto plan = plan_run(arguments);
    return plan ? "nothing" : plan.error().message;
  };
  EXPECT_EQ(refused([](RunArguments& given) { given.threads = "-1"; }),
            "--threads -1: expected a whole number from 1 to 1024");
  EXPECT_EQ(refused([](RunArguments& given) { given.links.join = {"1e2"}; }),
            "--join 1e2: expected HOST:PORT, or ROUND from 1 on");
  EXPECT_EQ(refused([](RunArguments& given) {
              given.set = {"rounds=3", "training.rounds=4"};
            }),
            "--set: training.rounds is given twice, 3 and 4");
  EXPECT_EQ(refused([](RunArguments& given) {
              given.peers = "2";
              given.links.wait_for = "3";
            }),
            "--wait-for 3: 2 peers begin here, and nobody else can join them: raise --peers, or give --token "
            "or --run, "
            "and --listen");
  EXPECT_EQ(refused([](RunArguments& given) {
              given.set = {"rounds=3", "rounds=3"};
              given.threads = "1024";
              given.links.join = {"node:7000", "[::1]:7000"};
              given.links.insecure = true;
            }),
            "nothing");
}

}  // namespace
}  // namespace tw::cli
