// SPDX-License-Identifier: Apache-2.0
#include "host/system/queue_time.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <thread>
#include <vector>

namespace tw::host {
namespace {

void burn(double seconds) {
  const auto used = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double end = used() + seconds;
  while (used() < end) {
  }
}

TEST(QueueTime, grows_while_two_threads_want_one_processor) {
  cpu_set_t before, one;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof before, &before));
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
  QueueTime queue;
  const Instant start(std::chrono::hours(1));
  const double first = queue.seconds(start).value();
  std::thread other([] { burn(0.2); });
  burn(0.1);
  EXPECT_FALSE(queue.seconds(start + QueueTime::kEvery / 2)) << "it was read a moment ago";
  burn(0.1);
  const double grown = queue.seconds(start + QueueTime::kEvery).value() - first;
  other.join();
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_GT(grown, 0.03);
}

}  // namespace
}  // namespace tw::host
