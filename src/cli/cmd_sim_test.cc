// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/test_options.h"

namespace tw::cli {
namespace {

std::string sim_fault(const std::string& words) { return fault_in_options(describe_sim, "sim " + words); }

TEST(SimOptions, that_nothing_would_read_are_refused) {
  EXPECT_EQ(sim_fault("storm.yaml --hours 5 --codec int4"), "--hours excludes SCENARIO.yaml");
  EXPECT_EQ(sim_fault("storm.yaml --usd-per-h 3"), "--usd-per-h excludes SCENARIO.yaml");
  EXPECT_EQ(sim_fault("--lifetimes gcp-k80 --seeds 1..5"), "--seeds excludes --lifetimes");
  EXPECT_EQ(sim_fault("--lifetimes gcp-k80 --work-h 3"), "--work-h requires --policy");
  EXPECT_EQ(sim_fault("--lifetimes gcp-k80 --parameters-m 1 --model-mb 400"),
            "--model-mb excludes --parameters-m");
  EXPECT_EQ(sim_fault("--trace-spot a.csv --zones 3"), "--zones requires --lifetimes");
  for (const char* fine :
       {"storm.yaml --seeds 1..5 --jobs 2", "--lifetimes gcp-k80 --hours 5 --seed 3 --zones 2",
        "--trace-spot a.csv --policy live --work-h 3 --deadline-h 4 --usd-per-h 3"})
    EXPECT_EQ(sim_fault(fine), "") << fine;
}

}  // namespace
}  // namespace tw::cli
