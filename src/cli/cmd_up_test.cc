// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/arguments/launch_arguments.h"
#include "cli/test_options.h"

namespace tw::cli {
namespace {

std::string up_fault(const std::string& words) {
  return fault_in_options(describe_up, "up PLAN.yaml --on local " + words);
}

TEST(UpOptions, of_keep_and_of_the_check_alone_are_refused_without_it) {
  EXPECT_EQ(up_fault("--every 2s"), "--every requires --keep");
  EXPECT_EQ(up_fault("--ask"), "--ask requires --keep");
  EXPECT_EQ(up_fault("--offers own.csv"), "--offers requires --keep");
  EXPECT_EQ(up_fault("--catalog built-in"), "--catalog requires --keep");
  EXPECT_EQ(up_fault("--dry-run --check"), "--check excludes --dry-run");
  EXPECT_EQ(up_fault("--keep --ask --every 2s --offers own.csv"), "");
  EXPECT_EQ(up_fault("--keep --dry-run"), "");
}

}  // namespace
}  // namespace tw::cli
