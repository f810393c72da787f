// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/event_log_json.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "monitor/logs/test_event_log.h"
#include "monitor/report/missing.h"

namespace tw::monitor {
namespace {

using world::Phase;
using namespace std::chrono_literals;

/// While it lives, no file of this process grows beyond so many bytes, as if its disk were full.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }

 private:
  rlimit before_{};
  void (*ignored_)(int);
};

std::vector<MissingEvents> gaps_in(const std::vector<LogEntry>& log) {
  LogGaps gaps;
  for (const LogEntry& entry : log) gaps.take(entry);
  return gaps.found();
}

LogEntry full_entry() {
  return {.writer = PeerId{7},
          .unix_nanos = 1'767'225'600'123'000'000,
          .event = {.at = Instant(1500ms),
                    .round = 3,
                    .peer = PeerId{1ULL << 63},
                    .why = "no \"beat\"",
                    .fact = event::Commit{.digest = "00ff",
                                          .cause = event::Cause::minority,
                                          .peers = {PeerId{1}, PeerId{1ULL << 63}},
                                          .parent = "00fe",
                                          .samples_of = {{PeerId{1}, "0-3"}},
                                          .samples = 4,
                                          .samples_total = 96,
                                          .last = true,
                                          .loss = 2.25,
                                          .use = {.peak_memory = 1ULL << 40},
                                          .slow = {{PeerId{9}, 5}}}}};
}

TEST(EventLine, has_the_promised_keys_in_reading_order) {
  EXPECT_EQ(
      to_json_line(full_entry()),
      R"({"t":1.5,"time":"2026-01-01T00:00:00.123Z","peer":7,"round":3,"phase":"commit",)"
      R"("about":9223372036854775808,"why":"no \"beat\"","digest":"00ff","cause":"minority",)"
      R"("peers":[1,9223372036854775808],"parent":"00fe","samples:1":"0-3","samples":4,"samples_total":96,)"
      R"("majority_samples":0,"carried":0,"members":0,"last":1,"loss":2.25,"peak_memory":1099511627776,)"
      R"("slow:9":5})");
}

TEST(EventLine, leaves_out_what_is_absent) {
  const LogEntry entry{.writer = PeerId{7}, .unix_nanos = 0, .event = {.fact = event::Start{}}};
  EXPECT_EQ(to_json_line(entry),
            R"({"t":0.0,"time":"1970-01-01T00:00:00.000Z","peer":7,"round":0,"phase":"start"})");
}

TEST(EventLine, has_a_time_that_can_be_read_also_where_the_clock_is_before_1970) {
  for (const std::int64_t millis : {-1LL, -316LL, -1000LL, -204'006'638'316LL}) {
    const LogEntry entry{.writer = PeerId{7}, .unix_nanos = millis * 1'000'000, .event = {}};
    const auto read = parse_json_line(to_json_line(entry));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read.value().unix_nanos, entry.unix_nanos);
  }
  EXPECT_EQ(calendar_time(-1), "1969-12-31T23:59:59.999Z");
}

TEST(EventLine, leaves_out_what_a_later_version_tells_besides) {
  std::string line = to_json_line(full_entry());
  const std::string known = line;
  line.insert(line.size() - 1, R"(,"mood":"fine","list":[1])");
  const auto again = parse_json_line(line);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json_line(again.value()), known);
}

TEST(EventLine, survives_the_way_to_text_and_back) {
  const LogEntry before = full_entry();
  const auto after = parse_json_line(to_json_line(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after.value().writer, before.writer);
  EXPECT_EQ(after.value().unix_nanos, before.unix_nanos);
  const world::Event& event = after.value().event;
  EXPECT_EQ(event.at, before.event.at);
  EXPECT_EQ(event.round, before.event.round);
  EXPECT_EQ(event.peer, before.event.peer);
  EXPECT_EQ(event.why, before.event.why);
  const auto* commit = event.as<event::Commit>();
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->cause, event::Cause::minority);
  EXPECT_EQ(commit->peers, before.event.as<event::Commit>()->peers);
  EXPECT_EQ(commit->samples_of, before.event.as<event::Commit>()->samples_of);
  EXPECT_EQ(commit->slow, before.event.as<event::Commit>()->slow);
  EXPECT_TRUE(commit->last);
  EXPECT_EQ(commit->calc_s, std::nullopt);
}

TEST(EventLine, names_every_phase_and_knows_the_name_again) {
  for (std::size_t phase = 0; phase < world::kPhaseNames.size(); ++phase) {
    LogEntry entry = full_entry();
    entry.event.fact = world::fact_of(static_cast<Phase>(phase));
    EXPECT_EQ(entry.event.fact.index(), phase);
    const auto again = parse_json_line(to_json_line(entry));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again.value().event.phase(), entry.event.phase());
  }
}

TEST(EventLine, carries_numbers_that_json_lacks_and_texts_that_are_not_utf8) {
  LogEntry entry = full_entry();
  entry.event.why = "bytes \xff\xfe";
  entry.event.fact = event::Commit{.loss = std::numeric_limits<double>::quiet_NaN()};
  const auto again = parse_json_line(to_json_line(entry));
  ASSERT_TRUE(again) << again.error().message;
  const event::Measure loss = again.value().event.as<event::Commit>()->loss;
  ASSERT_TRUE(loss);
  EXPECT_TRUE(std::isnan(*loss));
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
       "unknown phase dance: a newer tradewind may know it"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"call","calc_s":"2"})",
       "\"calc_s\" is not a number"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"call","members":-2})",
       "\"members\" is not a whole number"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"start","site":4})",
       "\"site\" is not a text"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"commit","slow:x":4})",
       "\"slow:x\" is not named after a peer"},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"call","why":3})", "\"why\""},
      {R"({"t":1,"time":"2026-01-01T00:00:00.000Z","peer":1,"round":1,"phase":"commit","peers":[-1]})",
       "\"peers\" is not a list"},
  };
  for (const auto& [text, expected] : cases) {
    const auto entry = parse_json_line(text);
    ASSERT_FALSE(entry) << text;
    EXPECT_NE(entry.error().message.find(expected), std::string::npos)
        << text << ": " << entry.error().message;
  }
}

TEST_F(EventLogFile, holds_what_was_emitted) {
  open().emit({.at = Instant(2s), .round = 4, .fact = event::Commit{}});
  const auto entries = read_event_log(path());
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries.value().size(), 1U);
  EXPECT_EQ(entries.value()[0].writer, PeerId{7});
  EXPECT_EQ(entries.value()[0].event.round, 4U);
  EXPECT_EQ(entries.value()[0].unix_nanos, clock_.unix_nanos());
}

TEST_F(EventLogFile, is_read_up_to_a_line_that_a_killed_writer_left_torn) {
  open().emit({.at = Instant(2s), .round = 4, .fact = event::Commit{}});
  append(R"({"t":3.0,"time":"2026-01-)");
  const auto entries = read_event_log(path());
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries.value().size(), 1U);
}

TEST_F(EventLogFile, is_continued_after_its_last_whole_line) {
  open().emit({.at = Instant(2s), .round = 4, .fact = event::Commit{}});
  append(R"({"t":3.0,"time":"2026-01-)");
  open().emit({.at = Instant(5s), .round = 5, .fact = event::Commit{}});
  const auto entries = read_event_log(path());
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries.value().size(), 2U);
  EXPECT_EQ(entries.value()[1].event.round, 5U);
}

TEST_F(EventLogFile, names_file_and_line_of_a_broken_line_that_is_not_the_last) {
  open().emit({.at = Instant(2s), .round = 4, .fact = event::Commit{}});
  append("{\"t\":3.0\n");
  open().emit({.at = Instant(5s), .round = 5, .fact = event::Commit{}});
  const auto entries = read_event_log(path());
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().message,
            path() + ":2: not a JSON object; move this log elsewhere, and the others can be read");
}

TEST_F(EventLogFile, gives_the_heads_of_lines_that_nobody_wants) {
  const LogEntry all = full_entry();
  LogEntry head = all;
  head.event.why.clear();
  head.event.fact = world::fact_of(all.event.phase());
  const std::string line = to_json_line(all);
  const auto read = parse_json_line(line, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json_line(read.value()), to_json_line(head));
  EXPECT_EQ(to_json_line(parse_json_line(line, phases({all.event.phase()})).value()), line);
  for (const char* other :
       {R"({"peer":1,"t":2,"time":"2026-01-31T12:00:00.000Z","round":3,"phase":"commit"})",
        R"({"t": 2,"time":"2026-01-31T12:00:00.000Z","peer":1,"round":3,"phase":"commit"})"})
    EXPECT_EQ(parse_json_line(other, {}).value().event.round, 3U) << "other programs may write it so";
  for (const char* broken :
       {R"({"t":2,"time":"2026-01-31T12:00:00.000Z","peer":1,"round":3,"phase":"apply")",
        R"({"t":2,"time":"yesterday","peer":1,"round":3,"phase":"apply"})",
        R"({"t":2,"time":"2026-01-31T12:00:00.000Z","peer":-1,"round":3,"phase":"apply"})",
        R"({"t":2,"time":"2026-01-31T12:00:00.000Z","peer":1,"round":3,"phase":"nap"})"})
    EXPECT_FALSE(parse_json_line(broken, {})) << broken;
}

TEST_F(EventLogFile, that_cannot_be_written_is_said_once_and_stops_nobody) {
  auto log = JsonEventLog::open("/dev/full", PeerId{7}, clock_);
  ASSERT_TRUE(log);
  log.value().emit({.at = Instant(1s), .round = 1, .fact = event::Accumulate{}});
  ASSERT_TRUE(log.value().trouble());
  EXPECT_NE(log.value().trouble()->message.find("/dev/full"), std::string::npos);
  log.value().emit({.at = Instant(1s), .round = 2, .fact = event::Accumulate{}});
}

TEST_F(EventLogFile, of_a_disk_that_was_full_says_how_many_events_are_missing_and_holds_no_torn_line) {
  JsonEventLog log = open();
  emit_rounds(log, 1, 3);
  const std::uintmax_t room = std::filesystem::file_size(path()) + 20;  // the next line is torn
  {
    const SmallDisk full(room);
    emit_rounds(log, 4, 9);
    ASSERT_TRUE(log.trouble());
    EXPECT_EQ(log.trouble()->missing, 6U);
    EXPECT_NE(log.trouble()->message.find(path()), std::string::npos) << log.trouble()->message;
    EXPECT_LT(std::filesystem::file_size(path()), room) << "what was written of a line is cut off";
  }
  emit_rounds(log, 10, 11);
  EXPECT_FALSE(log.trouble());

  const auto all = entries();
  ASSERT_EQ(all.size(), 3U + 1 + 2);
  const world::Event& gap = all[3].event;
  EXPECT_EQ(gap.why, std::generic_category().message(EFBIG));
  ASSERT_TRUE(gap.as<event::Log>());
  EXPECT_EQ(gap.as<event::Log>()->missing, 6U);
  EXPECT_EQ(gap.as<event::Log>()->seconds, 6.0);
  EXPECT_EQ(all[4].event.round, 10U);
}

TEST_F(EventLogFile, that_cannot_be_written_is_tried_once_a_second_and_for_the_last_event) {
  JsonEventLog log = open();
  emit_rounds(log, 1, 1);
  {
    const SmallDisk full(0);
    emit_rounds(log, 2, 2);
  }
  log.emit({.at = clock_.time, .round = 2, .fact = event::Commit{}});
  EXPECT_TRUE(log.trouble()) << "within the same second";
  log.emit({.at = clock_.time, .round = 2, .fact = event::Stop{}});
  EXPECT_FALSE(log.trouble());
  const auto all = entries();
  ASSERT_EQ(all.size(), 3U);
  ASSERT_TRUE(all[1].event.as<event::Log>());
  EXPECT_EQ(all[1].event.as<event::Log>()->missing, 2U);
  EXPECT_EQ(all[2].event.phase(), Phase::stop);
}

TEST_F(EventLogFile, that_was_removed_with_its_folder_goes_on_in_a_new_one_that_says_what_is_gone) {
  JsonEventLog log = open();
  clock_.time = Instant();
  log.emit({.at = clock_.time, .fact = event::Start{.digest = "00ff"}});
  emit_rounds(log, 1, 3);
  EXPECT_EQ(log.take_removal(), "");
  std::filesystem::remove_all(folder_);
  emit_rounds(log, 4, 6);
  EXPECT_EQ(log.take_removal(), "the event log " + path() +
                                    " was removed or moved; a new one goes on without the 4 lines before");
  EXPECT_EQ(log.take_removal(), "") << "once";
  EXPECT_FALSE(log.trouble());

  const auto all = entries();
  ASSERT_EQ(all.size(), 2U + 3);
  ASSERT_TRUE(all[0].event.as<event::Start>());
  EXPECT_EQ(all[0].event.as<event::Start>()->digest, "00ff") << "a reader knows its run";
  ASSERT_TRUE(all[1].event.as<event::Log>());
  EXPECT_EQ(all[1].event.as<event::Log>()->missing, 4U);
  EXPECT_EQ(all[2].event.round, 4U);
}

TEST_F(EventLogFile, that_was_moved_is_noticed_once_a_second_and_by_the_last_event) {
  JsonEventLog log = open();
  emit_rounds(log, 1, 1);
  std::filesystem::rename(path(), path("moved"));
  log.emit({.at = clock_.time, .round = 2, .fact = event::Commit{}});
  EXPECT_FALSE(std::filesystem::exists(path())) << "within the same second";
  log.emit({.at = clock_.time, .round = 2, .fact = event::Stop{}});
  EXPECT_EQ(entries().back().event.phase(), Phase::stop);
}

TEST_F(EventLogFile, leaves_a_file_of_its_name_alone_that_another_run_has_begun) {
  JsonEventLog log = open();
  emit_rounds(log, 1, 2);
  std::filesystem::rename(path(), path("moved"));
  std::ofstream(path()) << "of others\n";
  emit_rounds(log, 3, 5);
  ASSERT_TRUE(log.trouble());
  EXPECT_EQ(log.trouble()->message, "cannot write the event log " + path() + ": File exists");
  std::string kept;
  std::getline(std::ifstream(path()) >> std::ws, kept);
  EXPECT_EQ(kept, "of others");
  std::filesystem::remove(path());
  emit_rounds(log, 6, 6);
  EXPECT_FALSE(log.trouble());
  EXPECT_EQ(entries().front().event.as<event::Log>()->missing, 5U);
}

TEST_F(EventLogFile, whose_folder_cannot_be_made_again_is_trouble) {
  JsonEventLog log = open();
  emit_rounds(log, 1, 2);
  std::filesystem::remove_all(folder_);
  std::ofstream(folder_) << "a file in its place";
  emit_rounds(log, 3, 5);
  ASSERT_TRUE(log.trouble());
  EXPECT_TRUE(log.trouble()->message.starts_with("cannot write the event log " + path()))
      << log.trouble()->message;
  std::filesystem::remove(folder_);
  emit_rounds(log, 6, 6);
  EXPECT_FALSE(log.trouble());
  EXPECT_EQ(entries().front().event.as<event::Log>()->missing, 5U);
}

TEST_F(EventLogFile, with_a_wrong_path_is_an_error_at_once) {
  const auto log = JsonEventLog::open(path("none/events-7.jsonl"), PeerId{7}, clock_);
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("No such file"), std::string::npos) << log.error().message;
}

TEST_F(EventLogFile, follows_no_symbolic_link) {
  const std::string other = path("other.txt");
  std::ofstream(other) << "of somebody else\n";
  std::filesystem::create_symlink(other, path());
  const auto log = JsonEventLog::open(path(), PeerId{7}, clock_);
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("it is a symbolic link"), std::string::npos) << log.error().message;
  EXPECT_EQ(std::filesystem::file_size(other), 17U);
}

TEST_F(EventLogFile, goes_on_in_further_files_and_keeps_the_first_and_the_newest) {
  constexpr LogLimits kSmall{.part_bytes = 1000, .parts = 3};
  {
    JsonEventLog log = open(kSmall);
    emit_rounds(log, 1, 100);
  }
  const std::vector<std::uint64_t> parts = log_parts(path());
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0], 1U);
  EXPECT_GT(parts[1], 2U);
  EXPECT_EQ(parts[2], parts[1] + 1);
  std::uintmax_t bytes = 0;
  for (const std::uint64_t part : parts) bytes += std::filesystem::file_size(log_part_path(path(), part));
  EXPECT_LT(bytes, 3U * 1300) << "a part ends with the line that fills it";

  const auto all = entries();
  EXPECT_EQ(all.front().event.round, 1U);
  EXPECT_EQ(all.back().event.round, 100U);
  const auto gaps = gaps_in(all);
  ASSERT_EQ(gaps.size(), 1U);
  const auto commits =
      std::ranges::count(all, Phase::commit, [](const LogEntry& e) { return e.event.phase(); });
  const auto removed_heads = parts[1] - 2;  // each removed part began with a line about the log
  EXPECT_EQ(gaps[0].events, 100U - static_cast<std::uint64_t>(commits) + removed_heads);
}

TEST_F(EventLogFile, is_continued_in_its_newest_part) {
  constexpr LogLimits kSmall{.part_bytes = 1000, .parts = 8};
  for (Round round = 1; round <= 40; round += 4) {
    JsonEventLog log = open(kSmall);
    emit_rounds(log, round, round + 3);
  }
  EXPECT_GT(log_parts(path()).size(), 3U);
  const auto all = entries();
  EXPECT_EQ(std::ranges::count(all, Phase::commit, [](const LogEntry& e) { return e.event.phase(); }), 40);
  EXPECT_TRUE(gaps_in(all).empty());
  EXPECT_EQ(read_event_logs(folder_).value().size(), 1U) << "all parts are one log";
}

TEST_F(EventLogFile, is_a_regular_file) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const auto entries = read_event_log(path());
  ASSERT_FALSE(entries);
  EXPECT_NE(entries.error().message.find("a pipe"), std::string::npos) << entries.error().message;
}

TEST_F(EventLogFile, of_every_writer_is_found_in_the_folder) {
  for (const PeerId writer : {PeerId{}, PeerId{1}, PeerId{12}}) {
    auto log = JsonEventLog::open(path(event_log_name(writer)), writer, clock_);
    ASSERT_TRUE(log);
    log.value().emit({.at = Instant(1s), .fact = event::Start{}});
  }
  std::ofstream(path("notes.txt")) << "not ours";
  const auto logs = read_event_logs(folder_);
  ASSERT_TRUE(logs) << logs.error().message;
  EXPECT_EQ(logs.value().size(), 3U);
  EXPECT_EQ(read_event_logs(path(event_log_name(PeerId{12}))).value().size(), 1U) << "one log";

  EXPECT_NE(read_event_logs(folder_ + "/none").error().message.find(folder_ + "/none"), std::string::npos);
  std::filesystem::create_directories(folder_ + "/empty");
  EXPECT_EQ(read_event_logs(folder_ + "/empty").error().message,
            "no event log (events-*.jsonl) in " + folder_ + "/empty");
  std::ofstream(folder_ + "/empty/events-1.jsonl.gz") << "not read";
  EXPECT_EQ(read_event_logs(folder_ + "/empty").error().message,
            "no event log (events-*.jsonl) in " + folder_ +
                "/empty; it has events-1.jsonl.gz: decompress such files");
}

}  // namespace
}  // namespace tw::monitor
