// SPDX-License-Identifier: Apache-2.0
#include "host/system/allocation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace tw::host {
namespace {

constexpr std::size_t kBlock = 64 << 10;
constexpr std::size_t kBlocks = 1024;

std::size_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  return 0;
}

TEST(Allocation, of_a_burst_goes_back_to_the_kernel_when_told) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer allocates in its own way";
#endif
  keep_freed_memory();
  std::vector<std::unique_ptr<char[]>> burst;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    burst.push_back(std::make_unique<char[]>(kBlock));
    std::memset(burst.back().get(), 1, kBlock);
  }
  const std::unique_ptr<char[]> behind_it = std::make_unique<char[]>(kBlock);
  const std::size_t height = resident_bytes();
  burst.clear();
  EXPECT_GT(resident_bytes() + kBlock * kBlocks / 8, height) << "kept for the next round";
  return_freed_memory();
  EXPECT_LT(resident_bytes() + kBlock * kBlocks / 2, height);
}

// A new process each, since what mallopt() sets stays.
int kept_after_a_large_block() {
  keep_freed_memory();
  auto block = std::make_unique<char[]>(kBlock * kBlocks / 8);  // mapped by itself, by default
  std::memset(block.get(), 1, kBlock * kBlocks / 8);
  const std::size_t height = resident_bytes();
  block.reset();
  return resident_bytes() + kBlock * kBlocks / 16 > height ? 1 : 0;
}

TEST(AllocationDeathTest, follows_an_environment_that_chooses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer allocates in its own way";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(kept_after_a_large_block()), testing::ExitedWithCode(1), "");
  EXPECT_EXIT((setenv("MALLOC_TRIM_THRESHOLD_", "131072", 1), std::exit(kept_after_a_large_block())),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tw::host
