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

}  // namespace
}  // namespace tw::cli
