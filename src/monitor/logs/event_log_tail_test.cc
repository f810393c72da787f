// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/event_log_tail.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "monitor/logs/test_event_log.h"

namespace tw::monitor {
namespace {

using world::Phase;
using namespace std::chrono_literals;

std::string line_of_round_3() {
  return to_json_line({.writer = PeerId{7}, .event = {.round = 3, .fact = event::Commit{}}});
}

TEST_F(EventLogFile, is_followed_line_by_line_while_it_grows) {
  EventLogTail tail(path());
  EXPECT_TRUE(tail.poll().value().empty()) << "no such file yet";
  JsonEventLog log = open();
  log.emit({.at = Instant(1s), .round = 1, .fact = event::Accumulate{}});
  EXPECT_EQ(tail.poll().value().size(), 1U);
  EXPECT_TRUE(tail.poll().value().empty());

  const std::string line = line_of_round_3();
  append(line.substr(0, 20));
  EXPECT_TRUE(tail.poll().value().empty());
  append(line.substr(20) + "\n");
  EXPECT_EQ(tail.poll().value().size(), 1U);
}

TEST_F(EventLogFile, is_followed_up_to_a_broken_line_which_keeps_its_number) {
  JsonEventLog log = open();
  log.emit({.at = Instant(1s), .round = 1, .fact = event::Accumulate{}});
  append("{\"t\":3.0\n");
  EventLogTail tail(path());
  for (int again = 0; again < 3; ++again) {
    const auto polled = tail.poll();
    ASSERT_FALSE(polled);
    EXPECT_EQ(polled.error().message.find(path() + ":2: not a JSON object;"), 0U) << polled.error().message;
  }
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 9);
  append(line_of_round_3() + "\n");
  EXPECT_EQ(tail.poll().value().size(), 2U) << "what came before the broken line, too";
}

TEST_F(EventLogFile, is_followed_through_lines_that_are_longer_than_a_piece) {
  JsonEventLog log = open();
  for (const std::size_t length : {1U, 65'000U, 65'536U, 300'000U, 2U})
    log.emit({.at = Instant(1s), .round = length, .why = std::string(length, 'x'), .fact = event::Warn{}});
  EventLogTail tail(path());
  const auto polled = tail.poll();
  ASSERT_TRUE(polled) << polled.error().message;
  ASSERT_EQ(polled.value().size(), 5U);
  for (const LogEntry& entry : polled.value()) EXPECT_EQ(entry.event.why.size(), entry.event.round);
  EXPECT_EQ(tail.place(), (LogPlace{1, std::filesystem::file_size(path())}));
}

TEST_F(EventLogFile, is_followed_where_its_writer_cut_a_torn_line_off) {
  open().emit({.at = Instant(1s), .round = 1, .fact = event::Accumulate{}});
  append(R"({"t":3.0,"time":"2026-01-)");
  EventLogTail tail(path());
  EXPECT_EQ(tail.poll().value().size(), 1U);
  open().emit({.at = Instant(5s), .round = 5, .fact = event::Commit{}});
  const auto polled = tail.poll();
  ASSERT_TRUE(polled) << polled.error().message;
  EXPECT_EQ(polled.value().size(), 1U);
}

TEST_F(EventLogFile, that_is_no_file_is_named_by_those_who_follow_it) {
  std::filesystem::create_directory(path());
  const auto folder = EventLogTail(path()).poll();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, path() + ": cannot be read: it is a folder; expected a regular file");
  std::filesystem::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const auto pipe = EventLogTail(path()).poll();
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().message, path() + ": cannot be read: it is a pipe; expected a regular file");
}

TEST_F(EventLogFile, is_followed_where_its_writer_began_a_new_one) {
  JsonEventLog log = open();
  EventLogTail tail(path());
  emit_rounds(log, 1, 9);
  EXPECT_EQ(tail.poll().value().size(), 9U);
  std::filesystem::remove(path());
  EXPECT_TRUE(tail.poll().value().empty());
  emit_rounds(log, 10, 10);
  const auto seen = tail.poll();
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen.value().size(), 2U);
  EXPECT_EQ(seen.value().back().event.round, 10U);
}

TEST_F(EventLogFile, is_followed_where_a_longer_one_took_its_place) {
  std::optional<JsonEventLog> log(open());
  EventLogTail tail(path());
  emit_rounds(*log, 1, 2);
  EXPECT_EQ(tail.poll().value().size(), 2U);
  log.reset();
  std::filesystem::remove(path());
  log.emplace(open());
  emit_rounds(*log, 11, 19);
  const auto seen = tail.poll();
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen.value().size(), 9U);
  EXPECT_EQ(seen.value().front().event.round, 11U);
}

TEST_F(EventLogFile, is_followed_from_its_first_part_where_it_was_begun_anew) {
  constexpr LogLimits kSmall{.part_bytes = 500, .parts = 8};
  for (const Round last : {Round{29}, Round{60}}) {
    std::optional<JsonEventLog> log(open(kSmall));
    EventLogTail tail(path());
    emit_rounds(*log, 1, 20);
    EXPECT_FALSE(tail.poll().value().empty());
    log.reset();
    for (const std::uint64_t part : log_parts(path())) std::filesystem::remove(log_part_path(path(), part));
    EXPECT_TRUE(tail.poll().value().empty());
    log.emplace(open(kSmall));
    emit_rounds(*log, 21, last);
    const auto seen = tail.poll();
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen.value().front().event.round, 21U);
    EXPECT_EQ(seen.value().back().event.round, last);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
}

TEST_F(EventLogFile, is_followed_from_part_to_part) {
  JsonEventLog log = open({.part_bytes = 500, .parts = 8});
  EventLogTail tail(path());
  Round next = 1;
  for (Round round = 1; round <= 20; ++round) {
    emit_rounds(log, round, round);
    const auto seen = tail.poll();
    ASSERT_TRUE(seen) << seen.error().message;
    for (const LogEntry& entry : seen.value()) {
      if (entry.event.phase() != Phase::commit) continue;
      EXPECT_EQ(entry.event.round, next++);
    }
  }
  EXPECT_EQ(next, 21U);
  EXPECT_GT(log_parts(path()).size(), 2U);
}

TEST_F(EventLogFile, is_followed_past_broken_lines_where_they_are_skipped) {
  open().emit({.at = Instant(1s), .round = 1, .fact = event::Accumulate{}});
  append("{\"t\":3.0\n" + line_of_round_3() + "\n");
  const std::uintmax_t whole = std::filesystem::file_size(path());
  append("{\"t\":4.0");
  EventLogTail tail(path(), BrokenLine::skipped);
  const auto polled = tail.poll();
  ASSERT_TRUE(polled) << polled.error().message;
  ASSERT_EQ(polled.value().size(), 2U);
  EXPECT_EQ(polled.value()[1].event.round, 3U);
  EXPECT_EQ(tail.lines(), 3U);
  EXPECT_EQ(tail.place(), (LogPlace{1, whole}));
}

}  // namespace
}  // namespace tw::monitor
