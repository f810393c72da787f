// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_watch.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

std::optional<LogTrouble> full(std::uint64_t missing) {
  return LogTrouble{.message = "cannot write the event log x: No space left on device", .missing = missing};
}

TEST(LogWatch, complains_once_and_says_when_it_is_over) {
  LogWatch watch;
  EXPECT_EQ(watch.line(std::nullopt), std::nullopt);
  for (const char* what : {"first time", "second time"}) {
    EXPECT_EQ(
        watch.line(full(1)),
        "cannot write the event log x: No space left on device; events are missing in it, training goes on")
        << what;
    EXPECT_EQ(watch.line(full(230)), std::nullopt) << what;
    EXPECT_EQ(watch.line(std::nullopt), "the event log is written again; 230 events are missing in it")
        << what;
    EXPECT_EQ(watch.line(std::nullopt), std::nullopt) << what;
  }
}

}  // namespace
}  // namespace tw::monitor
