// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/commands.h"

namespace tw::cli {
namespace {

TEST(Token, with_an_address_that_nobody_can_dial_is_refused) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(token({.folder = "nowhere", .addresses = {"host:0"}}), kUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "--address host:0: expected a port that others dial, from 1 to 65535"),
            std::string::npos);
}

}  // namespace
}  // namespace tw::cli
