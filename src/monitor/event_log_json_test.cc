// SPDX-License-Identifier: Apache-2.0
#include "monitor/event_log_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

namespace tw {
namespace {

using namespace std::chrono_literals;

class StillClock : public Clock {
 public:
  Instant now() override { return Instant(12s); }

  std::int64_t unix_nanos() override { return 1'767'225'600'123'000'000; }  // 2026-01-01T00:00:00.123Z

  void at(Instant, std::function<void()>) override { TW_CHECK(false); }
};

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

  JsonEventLog open() {
    auto log = JsonEventLog::open(path(), PeerId{7}, clock_);
    EXPECT_TRUE(log);
    return std::move(log).value();
  }

  StillClock clock_;
  std::string folder_;
};

LogEntry full_entry() {
  LogEntry entry{.writer = PeerId{7}, .unix_nanos = 1'767'225'600'123'000'000, .event = {}};
  entry.event = {.at = Instant(1500ms),
                 .phase = Phase::lost,
                 .round = 3,
                 .peer = PeerId{1ULL << 63},
                 .why = "no \"beat\"",
                 .numbers = {{"silent_s", 2.25}, {"samples", 96}},
                 .digest = "00ff",
                 .cause = Cause::taken};
  return entry;
}

TEST(EventLine, has_the_promised_keys_in_reading_order) {
  EXPECT_EQ(to_json_line(full_entry()),
            R"({"t":1.5,"time":"2026-01-01T00:00:00.123Z","peer":7,"round":3,"phase":"lost",)"
            R"("about":9223372036854775808,"why":"no \"beat\"","digest":"00ff","cause":"taken",)"
            R"("silent_s":2.25,"samples":96})");
}

TEST(EventLine, leaves_out_what_is_absent) {
  LogEntry entry{.writer = PeerId{7}, .unix_nanos = 0, .event = {}};
  entry.event.phase = Phase::scatter;
  EXPECT_EQ(to_json_line(entry),
            R"({"t":0.0,"time":"1970-01-01T00:00:00.000Z","peer":7,"round":0,"phase":"scatter"})");
}

TEST(EventLine, survives_the_way_to_text_and_back) {
  const LogEntry before = full_entry();
  const auto after = parse_json_line(to_json_line(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after.value().writer, before.writer);
  EXPECT_EQ(after.value().unix_nanos, before.unix_nanos);
  const Event& event = after.value().event;
  EXPECT_EQ(event.at, before.event.at);
  EXPECT_EQ(event.phase, before.event.phase);
  EXPECT_EQ(event.round, before.event.round);
  EXPECT_EQ(event.peer, before.event.peer);
  EXPECT_EQ(event.why, before.event.why);
  EXPECT_EQ(event.digest, before.event.digest);
  EXPECT_EQ(event.cause, before.event.cause);
  EXPECT_EQ(event.numbers, before.event.numbers);
}

TEST(EventLine, names_every_phase_and_knows_the_name_again) {
  for (int phase = 0; phase <= static_cast<int>(Phase::kill); ++phase) {
    LogEntry entry = full_entry();
    entry.event.phase = static_cast<Phase>(phase);
    const auto again = parse_json_line(to_json_line(entry));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again.value().event.phase, entry.event.phase);
  }
}

TEST(EventLine, carries_numbers_that_json_lacks_and_texts_that_are_not_utf8) {
  LogEntry entry = full_entry();
  entry.event.why = "bytes \xff\xfe";
  entry.event.numbers = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  const auto again = parse_json_line(to_json_line(entry));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again.value().event.numbers.size(), 1U);
  EXPECT_TRUE(std::isnan(again.value().event.numbers[0].second));
}

TEST(EventLine, says_what_is_wrong_with_a_broken_one) {
  const std::pair<const char*, const char*> cases[] = {
      {"not json", "not a JSON object"},
      {"[1,2]", "not a JSON object"},
      {R"({"time":"x"})", "\"t\" is missing"},
      {R"({"t":1,"time":"yesterday","peer":1,"round":1,"phase":"call"})", "\"time\" is yesterday"},
      {R"({"t":1,"time":"2026-02-30T00:00:00.000Z","peer":1,"round":1,"phase":"call"})",
       "\"time\" is 2026-02-30"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":-1,"round":1,"phase":"call"})", "\"peer\""},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1.5,"phase":"call"})", "\"round\""},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"dance"})",
       "unknown phase dance"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"call","x":"y"})",
       "\"x\" is not a number"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"call","why":3})", "\"why\""},
  };
  for (const auto& [text, expected] : cases) {
    const auto entry = parse_json_line(text);
    ASSERT_FALSE(entry) << text;
    EXPECT_NE(entry.error().message.find(expected), std::string::npos)
        << text << ": " << entry.error().message;
  }
}

TEST_F(EventLogFile, holds_what_was_emitted) {
  open().emit({.at = Instant(2s), .phase = Phase::commit, .round = 4});
  const auto entries = read_event_log(path());
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries.value().size(), 1U);
  EXPECT_EQ(entries.value()[0].writer, PeerId{7});
  EXPECT_EQ(entries.value()[0].event.round, 4U);
  EXPECT_EQ(entries.value()[0].unix_nanos, clock_.unix_nanos());
}

TEST_F(EventLogFile, is_read_up_to_a_line_that_a_killed_writer_left_torn) {
  open().emit({.at = Instant(2s), .phase = Phase::commit, .round = 4});
  append(R"({"t":3.0,"time":"2026-01-)");
  const auto entries = read_event_log(path());
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries.value().size(), 1U);
}

TEST_F(EventLogFile, is_continued_after_its_last_whole_line) {
  open().emit({.at = Instant(2s), .phase = Phase::commit, .round = 4});
  append(R"({"t":3.0,"time":"2026-01-)");
  open().emit({.at = Instant(5s), .phase = Phase::commit, .round = 5});
  const auto entries = read_event_log(path());
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries.value().size(), 2U);
  EXPECT_EQ(entries.value()[1].event.round, 5U);
}

TEST_F(EventLogFile, names_file_and_line_of_a_broken_line_that_is_not_the_last) {
  open().emit({.at = Instant(2s), .phase = Phase::commit, .round = 4});
  append("{\"t\":3.0\n");
  open().emit({.at = Instant(5s), .phase = Phase::commit, .round = 5});
  const auto entries = read_event_log(path());
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().message, path() + ":2: not a JSON object");
}

TEST_F(EventLogFile, is_followed_line_by_line_while_it_grows) {
  EventLogTail tail(path());
  EXPECT_TRUE(tail.poll().value().empty()) << "no such file yet";
  JsonEventLog log = open();
  log.emit({.at = Instant(1s), .phase = Phase::accumulate, .round = 1});
  EXPECT_EQ(tail.poll().value().size(), 1U);
  EXPECT_TRUE(tail.poll().value().empty());

  const std::string line = to_json_line(full_entry());
  append(line.substr(0, 20));
  EXPECT_TRUE(tail.poll().value().empty());
  EXPECT_EQ(tail.rest(), line.substr(0, 20));
  append(line.substr(20) + "\n");
  EXPECT_EQ(tail.poll().value().size(), 1U);
}

TEST_F(EventLogFile, that_cannot_be_written_is_said_once_and_stops_nobody) {
  auto log = JsonEventLog::open("/dev/full", PeerId{7}, clock_);
  ASSERT_TRUE(log);
  log.value().emit({.at = Instant(1s), .phase = Phase::accumulate, .round = 1});
  ASSERT_TRUE(log.value().trouble());
  EXPECT_NE(log.value().trouble()->message.find("/dev/full"), std::string::npos);
  log.value().emit({.at = Instant(1s), .phase = Phase::accumulate, .round = 2});
}

TEST_F(EventLogFile, of_every_writer_is_found_in_the_folder) {
  for (const PeerId writer : {PeerId{}, PeerId{1}, PeerId{12}}) {
    auto log = JsonEventLog::open(path(event_log_name(writer)), writer, clock_);
    ASSERT_TRUE(log);
    log.value().emit({.at = Instant(1s), .phase = Phase::start});
  }
  std::ofstream(path("notes.txt")) << "not ours";
  const auto logs = read_event_logs(folder_);
  ASSERT_TRUE(logs) << logs.error().message;
  EXPECT_EQ(logs.value().size(), 3U);

  EXPECT_NE(read_event_logs(folder_ + "/none").error().message.find(folder_ + "/none"), std::string::npos);
  std::filesystem::create_directories(folder_ + "/empty");
  EXPECT_NE(read_event_logs(folder_ + "/empty").error().message.find("no event log"), std::string::npos);
}

}  // namespace
}  // namespace tw
