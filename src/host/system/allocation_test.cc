// SPDX-License-Identifier: Apache-2.0
#include "host/system/allocation.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tw::host
