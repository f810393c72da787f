// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_what_if.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

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

  std::string complaint() const {
    const Result<sim::WhatIf> what = what_if_of(arguments_);
    return what.ok() ? "" : what.error().message;
  }

  std::string file_ = testing::TempDir() + "what_if_spot.csv";
  WhatIfArguments arguments_;
};

TEST_F(WhatIfArgumentsTest, a_trace_is_played_to_its_end_or_for_the_hours_asked_for) {
  EXPECT_EQ(what_if_of(arguments_).value().length, 2h);
  arguments_.from_h = 0.5;
  arguments_.speed = 3;
  EXPECT_EQ(what_if_of(arguments_).value().length, 30min);
  arguments_.hours = 0.25;
  const sim::WhatIf what = what_if_of(arguments_).value();
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
  EXPECT_EQ(what_if_of(arguments_).value().length, 4h);
  arguments_.lifetimes = "k80";
  EXPECT_TRUE(complaint().starts_with("--lifetimes k80: expected one of gcp-k80, ")) << complaint();
}

TEST_F(WhatIfArgumentsTest, megabytes_are_those_of_fp32) {
  arguments_.model_mb = 100;
  EXPECT_EQ(what_if_of(arguments_).value().parameters, 25e6);
}

}  // namespace
}  // namespace tw::cli
