// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_place.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

TEST(CommandFor, a_run_names_the_folder_of_states_that_was_given) {
  EXPECT_EQ(command_for("status", "mnist", ""), "tw status mnist");
  EXPECT_EQ(command_for("down", "mnist", "/srv/my runs"), "tw down mnist --state '/srv/my runs'");
}

}  // namespace
}  // namespace tw::cli
