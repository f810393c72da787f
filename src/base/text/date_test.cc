// SPDX-License-Identifier: Apache-2.0
#include "base/text/date.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(Date, days_and_times_of_day_are_read) {
  EXPECT_EQ(parse_date("1970-01-01"), 0);
  EXPECT_EQ(parse_date("2023-04-25"), 1682380800);
  EXPECT_EQ(parse_date("2026-05-20T10:00:30Z"), 1779271230);
  EXPECT_EQ(parse_date("2026-05-20 10:00"), 1779271200);
  EXPECT_EQ(parse_date("2026-04-02T11:17:42-05:00"), parse_date("2026-04-02T16:17:42Z"));
  EXPECT_EQ(parse_date("2026-04-02T11:17:42+02:00"), parse_date("2026-04-02T09:17:42Z"));
}

TEST(Date, what_is_no_date_is_refused) {
  for (const char* text : {"", "2023", "2023-4-25", "2023-02-30", "2023-13-01", "2023/04/25", "2023-04-25x",
                           "2023-04-25T", "2023-04-25T24:00", "2023-04-25T10:00:00Q", "2023-04-25T10:00+2"})
    EXPECT_EQ(parse_date(text), std::nullopt) << text;
}

TEST(Date, what_was_written_is_read_back) {
  EXPECT_EQ(date_text(0), "1970-01-01");
  EXPECT_EQ(date_text(1779271230), "2026-05-20T10:00:30Z");
  for (std::int64_t s = -100'000'000; s < 4'000'000'000; s += 12'345'677)
    EXPECT_EQ(parse_date(date_text(s)), s);
}

}  // namespace
}  // namespace tw
