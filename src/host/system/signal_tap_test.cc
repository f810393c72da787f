// SPDX-License-Identifier: Apache-2.0
#include "host/system/signal_tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace tw::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): of a signal handler
volatile std::sig_atomic_t heard = 0;

void count(int) { heard = heard + 1; }

TEST(SignalTap, notes_a_signal_and_calls_the_programs_handler) {
  heard = 0;
  std::signal(SIGUSR2, count);
  tap_signal(SIGUSR2);
  tap_signal(SIGUSR2);
  EXPECT_TRUE(is_tapped(SIGUSR2));
  std::raise(SIGUSR2);
  EXPECT_EQ(heard, 1);
  EXPECT_THAT(take_tapped_signals(), ElementsAre(SIGUSR2));
  EXPECT_THAT(take_tapped_signals(), IsEmpty());
}

TEST(SignalTap, leaves_a_hangup_that_nohup_ignores) {
  std::signal(SIGHUP, SIG_IGN);
  tap_signal(SIGHUP);
  EXPECT_FALSE(is_tapped(SIGHUP));
  std::signal(SIGHUP, SIG_DFL);
}

TEST(SignalTap, leaves_signals_to_a_handler_that_the_program_sets_later) {
  heard = 0;
  tap_signal(SIGUSR1);
  std::signal(SIGUSR1, count);
  EXPECT_FALSE(is_tapped(SIGUSR1));
  std::raise(SIGUSR1);
  EXPECT_EQ(heard, 1);
  EXPECT_THAT(take_tapped_signals(), IsEmpty());
}

}  // namespace
}  // namespace tw::host
