// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_what_if.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "cli/commands.h"
#include "cli/sim/sim_policy.h"

namespace tw::cli {
namespace {

using namespace std::chrono_literals;

class WhatIfArgumentsTest : public testing::Test {
 protected:
  WhatIfArgumentsTest() {
    std::ofstream(file_) << "t_seconds,available\n0,8\n3600,4\n7200,4\n";
    arguments_.trace_file = file_;
  }

  ~WhatIfArgumentsTest() override { std::remove(file_.c_str()); }

  Result<sim::WhatIf> what_if() const {
    if (arguments_.policy.empty()) return what_if_of(arguments_, nullptr);
    const auto policy = policy_of(arguments_.policy);
    return policy ? what_if_of(arguments_, policy.value().get()) : policy.error();
  }

  /// A policy's prices, work and time.
  void ask(const std::string& policy) {
    arguments_.policy = policy;
    arguments_.what.usd_per_h = 0.2;
    arguments_.on_demand_usd_per_h = 1;
    arguments_.work_h = 1;
    arguments_.deadline_h = 1.5;
    arguments_.peers = 6;
  }

  std::string complaint() const {
    const Result<sim::WhatIf> what = what_if();
    return what.ok() ? "" : what.error().message;
  }

  std::string file_ = testing::TempDir() + "what_if_spot.csv";
  WhatIfArguments arguments_;
};

TEST_F(WhatIfArgumentsTest, a_trace_is_played_to_its_end_or_for_the_hours_asked_for) {
  EXPECT_EQ(what_if().value().length, 2h);
  arguments_.from_h = 0.5;
  arguments_.speed = 3;
  EXPECT_EQ(what_if().value().length, 30min);
  arguments_.hours = 0.25;
  const sim::WhatIf what = what_if().value();
  EXPECT_EQ(what.length, 15min);
  EXPECT_EQ(what.lifetimes.size(), 16U);
}

TEST_F(WhatIfArgumentsTest, a_window_beyond_the_trace_is_refused) {
  arguments_.from_h = 1;
  arguments_.hours = 2;
  EXPECT_EQ(complaint(), "--from 1 --hours 2: expected to lie within the trace, which is 2.00 h long");
}

TEST_F(WhatIfArgumentsTest, a_file_that_is_not_there_is_named) {
  arguments_.trace_file = "nowhere.csv";
  EXPECT_EQ(complaint(), "--trace-spot nowhere.csv: cannot be read: No such file or directory");
}

TEST_F(WhatIfArgumentsTest, one_of_trace_and_lifetimes) {
  arguments_.lifetimes = "gcp-k80";
  EXPECT_EQ(complaint(), "--lifetimes gcp-k80: and --trace-spot " + file_ + "; give one of the two");
  arguments_.trace_file.clear();
  EXPECT_EQ(what_if().value().length, 4h);
  arguments_.lifetimes = "k80";
  EXPECT_TRUE(complaint().starts_with("--lifetimes k80: expected one of gcp-k80, ")) << complaint();
}

TEST_F(WhatIfArgumentsTest, a_policy_takes_machines_of_the_trace_until_the_work_is_done) {
  arguments_.policy = "greedy";
  EXPECT_TRUE(complaint().starts_with("--policy: it compares prices; expected --usd-per-h")) << complaint();
  arguments_.what.usd_per_h = 0.2;
  arguments_.on_demand_usd_per_h = 1;
  EXPECT_TRUE(complaint().starts_with("--policy: expected --work-h and --deadline-h")) << complaint();
  arguments_.work_h = 1;
  arguments_.deadline_h = 1.5;
  arguments_.peers = 6;
  const auto what = what_if();
  ASSERT_TRUE(what.ok()) << what.error().message;
  const sim::PolicyCourse& course = *what.value().policy;
  EXPECT_EQ(course.interruptions, 2) << "after an hour the market has four machines";
  EXPECT_LE(course.finished_h, 1.5);
  EXPECT_EQ(what.value().length, from_seconds(3600 * course.finished_h));
  EXPECT_NEAR(course.work_h, 6 + course.finished_h, 1e-9) << "six machines, an anchor";
  int taken = 0;
  for (const sim::MachineLifetime& lifetime : what.value().lifetimes)
    taken += lifetime.taken && !lifetime.given_up ? 1 : 0;
  EXPECT_EQ(taken, 2);
  arguments_.deadline_h = 2.5;
  EXPECT_EQ(complaint(), "--from 0 --deadline-h 2.5: expected to lie within the trace, which covers 2.00 h");
  arguments_.deadline_h = 1.01;
  EXPECT_TRUE(complaint().starts_with("--deadline-h 1.01: too short for --work-h 1")) << complaint();
}

TEST_F(WhatIfArgumentsTest, a_policy_program_that_fails_is_no_wrong_usage_and_its_reason_stands_alone) {
  const auto failure = [&](const std::string& policy) {
    ask(policy);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_what_if(arguments_, false, ""), kFailed);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(failure("read line; exit 3"),
            "tw: --policy read line; exit 3: ended without an answer (exit code 3); expected one line for "
            "each line that it reads\n");
  EXPECT_NE(failure("gredy 2>/dev/null").find("(exit code 127)"), std::string::npos);
  EXPECT_NE(failure("gredy").find("; did you mean \"greedy\"?\n"), std::string::npos);
}

TEST_F(WhatIfArgumentsTest, megabytes_are_those_of_fp32) {
  arguments_.model_mb = 100;
  EXPECT_EQ(what_if().value().parameters, 25e6);
}

}  // namespace
}  // namespace tw::cli
