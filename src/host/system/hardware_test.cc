// SPDX-License-Identifier: Apache-2.0
#include "host/system/hardware.h"

#include <gtest/gtest.h>

#include <thread>

namespace tw::host {
namespace {

TEST(Hardware, names_the_cores_in_one_short_line) {
  const std::string words = hardware_words();
  EXPECT_NE(words.find(std::to_string(std::max(1U, std::thread::hardware_concurrency())) + " core"),
            std::string::npos)
      << words;
  EXPECT_EQ(words.find('\n'), std::string::npos);
  EXPECT_LE(words.size(), 96U);
}

}  // namespace
}  // namespace tw::host
