// SPDX-License-Identifier: Apache-2.0
#include "wan/shaping.h"

#include <gtest/gtest.h>

namespace tw::wan {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart = Instant(1s);

TEST(Gate, takes_the_time_of_the_bytes_at_its_rate) {
  Gate gate(8e6, 50ms);
  EXPECT_EQ(gate.admit(kStart, 1000), kStart + 1ms);
  EXPECT_EQ(gate.admit(kStart, 1000), kStart + 2ms);
  EXPECT_EQ(gate.admit(kStart + 10ms, 1000), kStart + 11ms) << "idle time is not saved up";
}

TEST(Gate, without_a_limit_is_not_there) {
  Gate gate(kUnlimited, 50ms);
  EXPECT_EQ(gate.admit(kStart, 1e9), kStart);
  EXPECT_EQ(gate.queued_bytes(kStart), 0);
}

TEST(Gate, drops_what_would_wait_longer_than_its_queue) {
  Gate gate(80e6, 100ms);  // room for 1 MB
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(gate.admit(kStart, 100'000)) << i;
  EXPECT_EQ(gate.admit(kStart, 1500), std::nullopt);
  EXPECT_DOUBLE_EQ(gate.queued_bytes(kStart), 1e6);
  EXPECT_EQ(gate.admit(kStart + 10ms, 100'000), kStart + 110ms) << "what left made room";
}

TEST(Gate, however_slow_has_room_for_a_burst_of_a_few_hosts) {
  Gate gate(1e6, 1ms);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(gate.admit(kStart, 65536)) << i;
  EXPECT_FALSE(gate.admit(kStart, 65536));
}

TEST(Gate, lets_what_waits_go_at_the_new_rate) {
  Gate gate(8e6, 50ms);
  ASSERT_EQ(gate.admit(kStart, 10'000), kStart + 10ms);
  EXPECT_EQ(gate.change(0.8e6, kStart + 5ms), 10);
  EXPECT_DOUBLE_EQ(gate.queued_bytes(kStart + 5ms), 5000);
  EXPECT_EQ(gate.admit(kStart + 5ms, 1000), kStart + 65ms);
}

TEST(Wire, delays_by_its_delay) {
  Wire wire;
  Prng prng(1);
  EXPECT_EQ(wire.carry(kStart, {.delay = 150ms}, prng), kStart + 150ms);
}

TEST(Wire, jitters_within_bounds_and_keeps_the_order) {
  Wire wire;
  Prng prng(1);
  const Link link{.delay = 10ms, .jitter = 4ms};
  Instant last{};
  Duration least = 1s, most = 0s;
  for (int i = 0; i < 1000; ++i) {
    const Instant sent = kStart + i * 1ms;
    const Instant arrival = wire.carry(sent, link, prng);
    EXPECT_GE(arrival, last);
    last = arrival;
    least = std::min(least, arrival - sent);
    most = std::max(most, arrival - sent);
  }
  EXPECT_GE(least, 6ms);
  EXPECT_LE(most, 14ms);
  EXPECT_LT(least, 8ms);
  EXPECT_GT(most, 13ms);
}

}  // namespace
}  // namespace tw::wan
