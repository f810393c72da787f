// SPDX-License-Identifier: Apache-2.0
#include "base/text/duration.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tw {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, has_a_number_and_a_unit) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("20s"), 20s);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0s"), 0s);
  for (const char* text : {"", "20", "s", "-5s", "20 s", "20s ", "9000h", "1e3s", "20S"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(DurationText, has_the_two_largest_units) {
  const std::pair<double, const char*> texts[] = {{-3, "0 s"},
                                                  {7.6, "8 s"},
                                                  {59.6, "1 min 0 s"},
                                                  {723, "12 min 3 s"},
                                                  {4980, "1 h 23 min"},
                                                  {12 * 86400 + 4 * 3600 + 59, "12 d 4 h"},
                                                  {4e8, "more than 10 years"}};
  for (const auto& [seconds, text] : texts) EXPECT_EQ(duration_text(seconds), text);
  EXPECT_EQ(duration_text(std::nan("")), "more than 10 years");
}

}  // namespace
}  // namespace tw
