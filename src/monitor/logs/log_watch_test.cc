// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_watch.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

using namespace std::chrono_literals;

std::optional<LogTrouble> full(std::uint64_t missing) {
  return LogTrouble{.message = "cannot write the event log x: No space left on device", .missing = missing};
}

TEST(LogWatch, complains_at_once_then_once_a_minute_and_says_when_it_is_over) {
  LogWatch watch;
  EXPECT_EQ(watch.line(Instant(0s), std::nullopt), std::nullopt);
  EXPECT_EQ(watch.line(Instant(1s), full(1)),
            "cannot write the event log x: No space left on device; 1 events are missing so far, training "
            "goes on");
  for (int second = 2; second < 61; ++second)
    EXPECT_EQ(watch.line(Instant(std::chrono::seconds(second)), full(9)), std::nullopt);
  EXPECT_NE(watch.line(Instant(61s), full(214)).value_or("").find("214 events are missing"),
            std::string::npos);
  EXPECT_EQ(watch.line(Instant(70s), full(230)), std::nullopt);
  EXPECT_EQ(watch.line(Instant(71s), std::nullopt),
            "the event log is written again; 230 events are missing in it");
  EXPECT_EQ(watch.line(Instant(72s), std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace tw::monitor
