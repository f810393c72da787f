// SPDX-License-Identifier: Apache-2.0
#include "wan/units.h"

#include <gtest/gtest.h>

#include "wan/topology.h"

namespace tw::wan {
namespace {

using namespace std::chrono_literals;

TEST(Units, rates_and_times_need_one) {
  EXPECT_EQ(parse_bit_s("500mbit"), 500e6);
  EXPECT_EQ(parse_bit_s("6.2gbit"), 6.2e9);
  EXPECT_EQ(parse_bit_s("8kbit"), 8e3);
  EXPECT_EQ(parse_duration("51.5ms"), 51'500us);
  EXPECT_EQ(parse_duration("150us"), 150us);
  EXPECT_EQ(parse_duration("1s"), 1s);
  for (const char* wrong : {"", "5", "mbit", "5 mbit", "5mbits", "-5mbit", "5e3mbit", "1.2.3mbit", "infmbit"})
    EXPECT_FALSE(parse_bit_s(wrong)) << wrong;
  for (const char* wrong : {"", "5", "ms", "-5ms", "5min"}) EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Units, bytes_and_shares_may_do_without) {
  EXPECT_EQ(parse_bytes("6291456"), 6291456);
  EXPECT_EQ(parse_bytes("4MiB"), 4 << 20);
  EXPECT_EQ(parse_share("0.1%"), 0.001);
  EXPECT_EQ(parse_share("0.25"), 0.25);
  EXPECT_FALSE(parse_bytes("4MB"));
  EXPECT_FALSE(parse_share("%"));
}

TEST(Units, a_time_beyond_all_sense_stays_one) {
  EXPECT_EQ(parse_duration("99999999999999999999s"), std::chrono::seconds(1'000'000'000));
}

TEST(Units, are_written_for_people) {
  EXPECT_EQ(format_bit_s(500e6), "500 Mbit/s");
  EXPECT_EQ(format_bit_s(6.2e9), "6.2 Gbit/s");
  EXPECT_EQ(format_bit_s(kUnlimited), "-");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(3 << 19), "1.5 MiB");
}

}  // namespace
}  // namespace tw::wan
