// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "monitor/logs/test_logs.h"
#include "world/clock.h"

namespace tw::monitor {

class StillClock : public world::Clock {
 public:
  Instant now() override { return time; }

  std::int64_t unix_nanos() override { return 1'767'225'600'123'000'000; }  // 2026-01-01T00:00:00.123Z

  void at(Instant, std::function<void()>) override { TW_CHECK(false); }

  Instant time{std::chrono::seconds(12)};
};

/// The log of peer 7, in a folder of its own.
class EventLogFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "tw-event-log-" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "events-7.jsonl") const { return folder_ + "/" + name; }

  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }

  JsonEventLog open(LogLimits limits = {}) {
    auto log = JsonEventLog::open(path(), PeerId{7}, clock_, limits);
    EXPECT_TRUE(log);
    return std::move(log).value();
  }

  /// An event a second, of a round each.
  void emit_rounds(JsonEventLog& log, Round first, Round last) {
    for (Round round = first; round <= last; ++round) {
      clock_.time = Instant(std::chrono::seconds(round));
      log.emit({.at = clock_.time, .round = round, .fact = event::Commit{}});
    }
  }

  std::vector<LogEntry> entries() const {
    auto entries = read_event_log(path());
    EXPECT_TRUE(entries) << (entries ? "" : entries.error().message);
    return entries ? std::move(entries).value() : std::vector<LogEntry>{};
  }

  StillClock clock_;
  std::string folder_;
};

}  // namespace tw::monitor
