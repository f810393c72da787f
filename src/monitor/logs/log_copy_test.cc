// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "monitor/logs/event_log_json.h"
#include "monitor/logs/log_file.h"
#include "monitor/logs/test_logs.h"

namespace tw::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kName = "events-7-20260101T000000123Z";

/// A store that may be away.
class LogShelf final : public world::Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) override { return Error{path}; }

  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    if (away) return Error{path + ": unreachable"};
    std::string text;
    for (const auto part : parts) text.append(reinterpret_cast<const char*>(part.data()), part.size());
    files[path] = text;
    written.push_back(path.substr(path.rfind('/') + 1));
    if (when_written) when_written();
    return Unit{};
  }

  Status rename(const std::string& from, const std::string& to) override {
    files[to] = files.at(from);
    files.erase(from);
    return Unit{};
  }

  Status remove(const std::string&) override { return Unit{}; }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (away) return Error{folder + ": unreachable"};
    std::vector<std::string> names;
    for (const auto& [path, text] : files) names.push_back(path.substr(folder.size() + 1));
    return names;
  }

  Status make_folder(const std::string&) override { return Unit{}; }

  /// Names since the last call.
  std::vector<std::string> news() { return std::exchange(written, {}); }

  std::map<std::string, std::string> files;
  std::vector<std::string> written;
  std::function<void()> when_written;
  bool away = false;
};

class LogCopies : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tw-log-copy-" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string log() const { return folder_ + "/events-7.jsonl"; }

  LogCopy copy(bool writes_whole = true) { return {store, log(), {"s3://b/logs", writes_whole}}; }

  /// A line of about so many bytes; it names the round.
  static std::string line(Round round, std::size_t bytes = 100) {
    const world::Event event{.round = round, .why = std::string(bytes, 'x'), .fact = event::Wait{}};
    return to_json_line({PeerId{7}, 1'767'225'600'123'000'000, event}) + '\n';
  }

  void append(const std::string& text, std::uint64_t file = 1) const {
    std::ofstream(log_part_path(log(), file), std::ios::app | std::ios::binary) << text;
  }

  /// The rounds of what a reader of the store finds.
  std::vector<Round> rounds() const {
    const std::string there = folder_ + "/read";
    std::filesystem::create_directories(there);
    for (const auto& [path, text] : store.files)
      std::ofstream(there + path.substr(path.rfind('/')), std::ios::binary) << text;
    const auto logs = read_event_logs(there);
    EXPECT_TRUE(logs) << logs.error().message;
    EXPECT_THAT(logs.value(), SizeIs(1));
    std::vector<Round> rounds;
    for (const LogEntry& entry : logs.value().front()) rounds.push_back(entry.event.round);
    return rounds;
  }

  LogShelf store;
  std::string folder_;
};

TEST_F(LogCopies, hold_whole_lines_under_a_name_of_their_own_and_only_what_grew_is_written) {
  LogCopy copies = copy();
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(store.files, IsEmpty()) << "there is no log yet";
  append(line(1) + line(2) + line(3).substr(0, 20));
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(store.news(), ElementsAre(std::string(kName) + ".jsonl"));
  EXPECT_THAT(rounds(), ElementsAre(1, 2));
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(store.news(), IsEmpty()) << "nothing is new";
  append(line(3).substr(20));
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(rounds(), ElementsAre(1, 2, 3));
}

TEST_F(LogCopies, are_cut_into_parts_and_a_full_one_is_written_once) {
  LogCopy copies = copy();
  std::vector<Round> all;
  for (Round round = 1; round <= 25; ++round) {
    append(line(round, LogCopy::kPartBytes / 11));
    all.push_back(round);
    ASSERT_TRUE(copies.copy());
  }
  EXPECT_EQ(rounds(), all);
  EXPECT_THAT(store.files, SizeIs(3));
  for (const auto& [path, text] : store.files) EXPECT_LE(text.size(), LogCopy::kPartBytes) << path;
  (void)store.news();
  append(line(26));
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(store.news(), ElementsAre(std::string(kName) + ".3.jsonl"));
}

TEST_F(LogCopies, of_a_log_that_was_begun_anew_lie_beside_those_of_the_former_one) {
  LogCopy copies = copy();
  append(line(1) + line(2));
  ASSERT_TRUE(copies.copy());
  std::filesystem::remove(log());
  ASSERT_TRUE(copies.copy()) << "there is none at the moment";
  append(to_json_line({PeerId{7}, 1'767'225'700'123'000'000, {.round = 3, .fact = event::Wait{}}}) + '\n');
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(store.news(), ElementsAre(std::string(kName) + ".jsonl", "events-7-20260101T000140123Z.jsonl"));
}

TEST_F(LogCopies, of_a_longer_log_in_the_place_of_the_former_one_have_all_of_it) {
  LogCopy copies = copy();
  append(line(1));
  ASSERT_TRUE(copies.copy());
  std::filesystem::remove(log());
  const world::Event first{.round = 3, .why = std::string(200, 'x'), .fact = event::Wait{}};
  append(to_json_line({PeerId{7}, 1'767'225'700'123'000'000, first}) + '\n' + line(4));
  ASSERT_TRUE(copies.copy());
  ASSERT_EQ(store.files.count("s3://b/logs/events-7-20260101T000140123Z.jsonl"), 1U);
  EXPECT_THAT(store.files.at("s3://b/logs/events-7-20260101T000140123Z.jsonl"),
              testing::AllOf(HasSubstr("\"round\":3"), HasSubstr("\"round\":4")));
}

TEST_F(LogCopies, stop_between_two_parts) {
  append(line(1, LogCopy::kPartBytes) + line(2, LogCopy::kPartBytes) + line(3));
  LogCopy copies = copy();
  store.when_written = [&] { copies.stop(); };
  const Status copied = copies.copy();
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().message, "there was no time for all of it");
  EXPECT_THAT(store.news(), SizeIs(1));
}

TEST_F(LogCopies, have_a_line_that_is_longer_than_a_part_alone) {
  append(line(1) + line(2, 3 * LogCopy::kPartBytes) + line(3));
  LogCopy copies = copy();
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(rounds(), ElementsAre(1, 2, 3));
  EXPECT_THAT(store.files, SizeIs(3));
}

TEST_F(LogCopies, go_on_where_an_earlier_process_ended) {
  for (Round round = 1; round <= 25; ++round) append(line(round, LogCopy::kPartBytes / 11));
  LogCopy first = copy();
  ASSERT_TRUE(first.copy());
  (void)store.news();
  append(line(26));
  LogCopy second = copy();
  ASSERT_TRUE(second.copy());
  EXPECT_THAT(store.news(), ElementsAre(std::string(kName) + ".3.jsonl")) << "full parts are there";
  EXPECT_EQ(rounds().size(), 26U);
}

TEST_F(LogCopies, follow_the_log_into_its_further_files) {
  LogCopy copies = copy();
  append(line(1));
  ASSERT_TRUE(copies.copy());
  append(line(2));
  append(line(3), 2);
  append(line(5), 4);  // the third was removed before it could be copied
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(rounds(), ElementsAre(1, 2, 3, 5));
}

TEST_F(LogCopies, wait_for_a_store_that_is_away) {
  LogCopy copies = copy();
  append(line(1));
  store.away = true;
  const Status never = copies.copy();
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("unreachable"));
  store.away = false;
  ASSERT_TRUE(copies.copy());
  for (Round round = 2; round <= 15; ++round) append(line(round, LogCopy::kPartBytes / 11));
  store.away = true;
  EXPECT_FALSE(copies.copy());
  store.away = false;
  ASSERT_TRUE(copies.copy());
  EXPECT_EQ(rounds().size(), 15U);
}

TEST_F(LogCopies, get_their_names_when_they_are_whole) {
  LogCopy copies = copy(false);
  append(line(1));
  ASSERT_TRUE(copies.copy());
  EXPECT_THAT(store.news(), ElementsAre(std::string(kName) + ".jsonl.part"));
  EXPECT_THAT(store.files, SizeIs(1)) << "it was renamed";
  EXPECT_THAT(rounds(), ElementsAre(1));
}

}  // namespace
}  // namespace tw::monitor
