// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tw {
namespace {

TEST(InParallel, does_each_part_once) {
  for (const std::size_t threads : {0U, 1U, 3U, 9U}) {
    for (const std::size_t parts : {0U, 1U, 2U, 100U}) {
      std::vector<std::atomic<int>> done(parts);
      in_parallel(threads, parts, [&](std::size_t i) { ++done[i]; });
      for (std::size_t i = 0; i < parts; ++i) EXPECT_EQ(done[i], 1) << i << " of " << parts;
    }
  }
}

TEST(InParallel, has_parts_that_wait_for_each_other) {
  std::atomic<int> here = 0;
  in_parallel(2, 2, [&](std::size_t) {
    ++here;
    while (here < 2) std::this_thread::yield();
  });
  EXPECT_EQ(here, 2);
}

TEST(InParallel, throws_what_a_part_throws) {
  const auto part = [](std::size_t i) {
    if (i == 3) throw std::runtime_error("part 3");
  };
  EXPECT_THROW(in_parallel(1, 8, part), std::runtime_error);
  EXPECT_THROW(in_parallel(4, 8, part), std::runtime_error);
}

TEST(ThreadsFor, are_few_for_little_work) {
  EXPECT_EQ(threads_for(1000, 8), 1U);
  EXPECT_EQ(threads_for(4 * kWorthAThread, 8), 4U);
  EXPECT_EQ(threads_for(400 * kWorthAThread, 8), 8U);
  EXPECT_EQ(threads_for(400 * kWorthAThread, 0), 1U);
}

}  // namespace
}  // namespace tw
