// SPDX-License-Identifier: Apache-2.0
#include "wan/load.h"

#include <gtest/gtest.h>

namespace tw::wan {
namespace {

using namespace std::chrono_literals;

Load after(std::uint64_t packets, std::uint64_t late, Duration cpu = 100ms, std::uint64_t unread = 0) {
  Load load;
  for (std::uint64_t i = 0; i < packets - late; ++i) load.delivered(100us);
  for (std::uint64_t i = 0; i < late; ++i) load.delivered(3ms);
  load.close(cpu, 1s, unread);
  return load;
}

TEST(Load, of_a_box_that_keeps_up_is_no_overload) {
  const Load load = after(10'000, 100);
  EXPECT_EQ(load.overloaded_seconds(), 0u);
  EXPECT_EQ(load.why(), "");
  EXPECT_EQ(load.last().packets, 10'000u);
  EXPECT_DOUBLE_EQ(load.last().cpu_share, 0.1);
}

TEST(Load, is_too_much_when_one_in_a_hundred_packets_is_late) {
  EXPECT_EQ(after(10'000, 101).why(), "1.0 % of packets more than 2 ms late, the worst 3.0 ms");
}

TEST(Load, a_few_late_packets_of_a_few_are_the_machine_s_hiccup) {
  EXPECT_EQ(after(20, 9).overloaded_seconds(), 0u);
  EXPECT_EQ(after(20, 10).overloaded_seconds(), 1u);
}

TEST(Load, is_too_much_beyond_nine_tenths_of_a_core) {
  EXPECT_EQ(after(1000, 0, 900ms).why(), "");
  EXPECT_EQ(after(1000, 0, 950ms).why(), "95 % of a core used");
}

TEST(Load, is_too_much_when_packets_were_not_read) {
  EXPECT_EQ(after(1000, 0, 1ms, 7).why(), "7 packets not read in time");
}

TEST(Load, remembers_overload_and_the_worst) {
  Load load = after(10'000, 5'000);
  load.delivered(10us);
  load.close(500ms, 1s, 0);
  EXPECT_EQ(load.overloaded_seconds(), 1u);
  EXPECT_EQ(load.worst_lag(), 3ms);
  EXPECT_EQ(load.last().worst_lag, 10us);
  EXPECT_DOUBLE_EQ(load.worst_cpu_share(), 0.5);
}

}  // namespace
}  // namespace tw::wan
