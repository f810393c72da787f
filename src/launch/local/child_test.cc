// SPDX-License-Identifier: Apache-2.0
#include "launch/local/child.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

namespace tw::launch {
namespace {

/// The signal that ended it; 0: none.
int ending_of(Child& child) {
  pollfd output{child.output(), POLLIN, 0};
  while (!child.ending()) poll(&output, 1, 1);
  return child.ended_by();
}

TEST(Child, gets_a_signal_that_comes_before_its_program_runs_although_this_one_handles_it) {
  const auto before = std::signal(SIGTERM, [](int) {});
  for (int again = 0; again < 20; ++again) {
    auto child = Child::start_piped({"sleep", "1"}, {});
    ASSERT_TRUE(child);
    child.value().send_signal(SIGTERM);
    EXPECT_EQ(ending_of(child.value()), SIGTERM);
  }
  std::signal(SIGTERM, before);
}

TEST(Child, outlives_a_file_that_may_not_grow_as_this_program_does) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  auto child = Child::start_piped({"grep", "-q", "SigIgn:.*[13579bdf]......$", "/proc/self/status"}, {});
  std::signal(SIGXFSZ, before);
  ASSERT_TRUE(child);
  EXPECT_EQ(ending_of(child.value()), 0);
  EXPECT_EQ(child.value().ending(), 0) << "bit 24 is SIGXFSZ";
}

TEST(Child, has_no_signal_blocked_that_this_thread_gets) {
  auto child = Child::start_piped({"grep", "-q", "SigBlk:.0000000000000000", "/proc/self/status"}, {});
  ASSERT_TRUE(child);
  EXPECT_EQ(ending_of(child.value()), 0);
  EXPECT_EQ(child.value().ending(), 0);
}

}  // namespace
}  // namespace tw::launch
