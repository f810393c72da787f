// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "sync/test_state.h"
#include "train/session/checkpoints.h"

/// Anchors copy finished checkpoints away.
namespace tw::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;

class MovedClock final : public world::Clock {
 public:
  Instant now() override { return time; }

  std::int64_t unix_nanos() override { return 0; }

  void at(Instant, std::function<void()>) override {}

  Instant time{};
};

/// Folders of files; those below `away` cannot be reached. torn: writing dies in the middle.
class Shelves final : public world::Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) override {
    if (gone(path)) return error(path);
    const auto found = files.find(path);
    return found == files.end() ? Result<std::vector<std::byte>>(error(path)) : found->second;
  }

  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    if (gone(path)) return error(path);
    ++writes[path.substr(0, path.find('/'))];
    std::vector<std::byte>& file = files[path];
    file.clear();
    for (const auto part : parts) file.insert(file.end(), part.begin(), part.end());
    if (!torn) return Unit{};
    file.resize(file.size() / 2);
    return error(path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (gone(to)) return error(to);
    files[to] = files.at(from);
    files.erase(from);
    return Unit{};
  }

  Status remove(const std::string& path) override {
    if (gone(path)) return error(path);
    if (only_grows) return Error{path + ": AccessDenied"};
    files.erase(path);
    return Unit{};
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (gone(folder)) return error(folder);
    std::vector<std::string> names;
    for (const auto& [path, bytes] : files)
      if (path.starts_with(folder + "/")) names.push_back(path.substr(folder.size() + 1));
    if (const auto then = std::exchange(after_list, {})) then();
    return names;
  }

  Status make_folder(const std::string& folder) override {
    return gone(folder) ? Status(error(folder)) : Status(Unit{});
  }

  std::map<std::string, std::vector<std::byte>> files;
  std::map<std::string, int> writes;  ///< by folder
  std::string away;
  bool torn = false;
  bool only_grows = false;           ///< nobody may remove anything
  std::function<void()> after_list;  ///< once

 private:
  bool gone(const std::string& path) const { return !away.empty() && path.starts_with(away); }

  static Error error(const std::string& path) { return Error{path + ": unreachable"}; }
};

class DiskQueue final : public world::Executor {
 public:
  void submit(world::Task job) override { jobs.push_back(std::move(job)); }

  void run_all() {
    for (; !jobs.empty(); jobs.pop_front()) {
      jobs.front().run();
      jobs.front().done(took);
    }
  }

  std::deque<world::Task> jobs;
  Duration took = 1s;
};

class CheckpointCopy : public ::testing::Test {
 protected:
  Checkpoints checkpoints(bool anchor = true, const std::string& to = "away") {
    return {{.folder = "own", .every = 1, .keep = 2, .to = to},
            {"7", {}, anchor},
            {clock, files, disk, copier, waits, [] {}}};
  }

  void save(Checkpoints& checkpoints, Round round) {
    const auto image =
        std::make_shared<const sync::StateImage>(sync::sample::image(records[round]));  // owners: the job
    checkpoints.save(image, begun, [](const Status& saved, Duration) { EXPECT_TRUE(saved.ok()); });
    disk.run_all();
  }

  /// What became of it.
  std::string copy(Checkpoints& checkpoints) {
    std::string text = "not due";
    if (!checkpoints.copy_is_due()) return text;
    checkpoints.copy(sync::sample::kRun, [&](const Checkpoints::Copied& copied, Duration) {
      text = !copied.ok()            ? copied.error().message
             : copied.value().record ? "round " + std::to_string(copied.value().record->round)
                                     : "nothing";
      stays = copied.ok() ? copied.value().stays : "";
    });
    copier.run_all();
    return text;
  }

  /// Round of the checkpoint from which a process would go on; 0: none.
  Round loaded(Checkpoints&& from) {
    Round round = 0;
    from.load(sync::sample::kRun, [&](Checkpoints::Loaded& found) {
      if (found.ok() && found.value()) round = found.value()->image.record.round;
    });
    disk.run_all();
    return round;
  }

  /// What it says then of checkpoints that it passes over, or why it goes on from none.
  std::vector<std::string> said(Checkpoints&& from) {
    std::vector<std::string> lines;
    from.load(sync::sample::kRun, [&](Checkpoints::Loaded& found) {
      if (!found.ok()) lines = {found.error().message};
      if (found.ok() && found.value()) lines = found.value()->skipped;
    });
    disk.run_all();
    return lines;
  }

  /// Both folders have rounds 5 and 6 then.
  void save_twice_and_copy() {
    Checkpoints own = checkpoints();
    for (Round round : {5, 6}) {
      save(own, round);
      ASSERT_EQ(copy(own), "round " + std::to_string(round));
    }
  }

  void lose(const std::string& prefix) {
    std::erase_if(files.files, [&](const auto& file) { return file.first.starts_with(prefix); });
  }

  void damage(const std::string& prefix) {
    for (auto& [path, bytes] : files.files)
      if (path.starts_with(prefix)) bytes.back() ^= std::byte{1};
  }

  std::vector<std::string> names(const std::string& folder) { return files.list(folder).value(); }

  /// The rounds of its checkpoints.
  std::vector<int> rounds(const std::string& folder) {
    std::vector<int> found;
    for (const std::string& name : names(folder)) found.push_back(std::stoi(name.substr(6)));
    return found;
  }

  std::vector<wire::Record> records = sync::sample::history(1, 9);
  Round begun = 0;
  std::string stays;  ///< Checkpoints::AtTarget, of the last copy
  MovedClock clock;
  Shelves files;
  DiskQueue disk, copier;
  Waits waits;
};

TEST_F(CheckpointCopy, has_the_same_bytes_under_the_same_name_and_as_many_are_kept) {
  begun = 4;  // rounds of a run before
  Checkpoints own = checkpoints();
  for (Round round : {1, 2, 3}) {
    save(own, round);
    EXPECT_EQ(copy(own), "round " + std::to_string(round));
    EXPECT_EQ(copy(own), "not due");
  }
  EXPECT_THAT(rounds("away"), ElementsAre(2, 3));
  for (const std::string& name : names("away"))
    EXPECT_EQ(files.files["away/" + name], files.files["own/" + name]);
}

TEST_F(CheckpointCopy, is_made_of_what_an_earlier_process_left_and_not_again_of_what_is_there) {
  {
    Checkpoints first = checkpoints(false);
    save(first, 4);
  }
  Checkpoints second = checkpoints();
  EXPECT_EQ(copy(second), "round 4");
  Checkpoints third = checkpoints();
  EXPECT_EQ(copy(third), "round 4");
  EXPECT_EQ(files.writes["away"], 1);
}

TEST_F(CheckpointCopy, is_tried_again_after_a_minute_and_after_the_next_checkpoint) {
  Checkpoints own = checkpoints();
  files.away = "away";
  save(own, 1);
  EXPECT_THAT(copy(own), HasSubstr("away: unreachable"));
  EXPECT_EQ(copy(own), "not due");
  save(own, 2);
  EXPECT_THAT(copy(own), HasSubstr("unreachable"));
  files.away.clear();
  clock.time += Checkpoints::kRetry - 1s;
  EXPECT_EQ(copy(own), "not due");
  clock.time += 1s;
  EXPECT_EQ(copy(own), "round 2");
}

TEST_F(CheckpointCopy, holds_up_no_checkpoint_and_those_that_overtake_it_go_as_one) {
  Checkpoints own = checkpoints();
  save(own, 1);
  std::vector<Round> copied;
  const auto begin = [&] {
    own.copy(sync::sample::kRun, [&](const Checkpoints::Copied& made, Duration) {
      copied.push_back(made.value().record->round);
    });
  };
  begin();
  EXPECT_EQ(waits.copies().current(), (swarm::Wait{.kind = swarm::Wait::Kind::copying,
                                                   .round = 1,
                                                   .total = sync::sample::image(records[1]).bytes(),
                                                   .place = "away"}));
  copier.jobs.front().run();
  for (Round round : {2, 3, 4}) save(own, round);
  EXPECT_THAT(rounds("own"), ElementsAre(3, 4)) << "each was saved at once";
  EXPECT_TRUE(own.is_copying());
  EXPECT_FALSE(own.copy_is_due()) << "one after the other";
  copier.jobs.front().done(1min);
  copier.jobs.pop_front();
  ASSERT_TRUE(own.copy_is_due());
  begin();
  copier.run_all();
  EXPECT_THAT(copied, ElementsAre(1, 4));
  EXPECT_FALSE(own.copy_is_due());
  EXPECT_EQ(waits.copies().current(), swarm::Wait{});
}

TEST_F(CheckpointCopy, is_of_the_one_that_replaced_the_only_one_while_the_folder_was_read) {
  Checkpoints own{{.folder = "own", .every = 1, .keep = 1, .to = "away"},
                  {"7", {}, true},
                  {clock, files, disk, copier, waits, [] {}}};
  save(own, 1);
  files.after_list = [&] { save(own, 2); };
  EXPECT_EQ(copy(own), "round 2");
}

TEST_F(CheckpointCopy, appears_whole_or_not_at_all) {
  Checkpoints own = checkpoints();
  save(own, 1);
  files.torn = true;
  EXPECT_THAT(copy(own), HasSubstr("unreachable"));
  EXPECT_THAT(names("away"), IsEmpty());
  files.torn = false;
  clock.time += Checkpoints::kRetry;
  EXPECT_EQ(copy(own), "round 1");
}

// A key that may not delete: each copy was there, beside a part of the same size, and counted as missing.
TEST_F(CheckpointCopy, in_a_store_is_made_although_nothing_there_can_be_removed) {
  Checkpoints own = checkpoints(true, "s3://away");
  for (Round round : {1, 2, 3}) {
    save(own, round);
    files.only_grows = true;
    EXPECT_EQ(copy(own), "round " + std::to_string(round));
    EXPECT_EQ(copy(own), "not due") << "it is not tried again";
    files.only_grows = false;
    EXPECT_EQ(stays.empty(), round < 3) << stays;
  }
  EXPECT_THAT(stays, AllOf(HasSubstr("more than checkpoint.keep stay in s3://away: s3://away/round-000001-"),
                           HasSubstr("AccessDenied")));
  EXPECT_THAT(names("s3://away"), AllOf(SizeIs(3), Not(Contains(HasSubstr(".part-")))));
  EXPECT_THAT(rounds("s3://away"), ElementsAre(1, 2, 3));
  EXPECT_EQ(files.writes["s3:"], 3) << "one each";
  for (const bool only_grows : {true, false}) {
    save(own, only_grows ? 4 : 5);
    files.only_grows = only_grows;
    EXPECT_THAT(copy(own), HasSubstr("round "));
    EXPECT_EQ(stays, "") << "it was said";
    files.only_grows = false;
  }
  EXPECT_THAT(rounds("s3://away"), ElementsAre(4, 5));
}

TEST_F(CheckpointCopy, is_made_of_the_newest_that_verifies) {
  Checkpoints own = checkpoints();
  save(own, 1);
  save(own, 2);
  files.files["own/" + names("own").back()].back() ^= std::byte{1};
  EXPECT_EQ(copy(own), "round 1");
  EXPECT_THAT(rounds("away"), ElementsAre(1));
}

TEST_F(CheckpointCopy, is_made_by_anchors_alone_and_only_where_it_is_asked_for) {
  for (auto [anchor, to] : {std::pair(false, "away"), std::pair(true, "")}) {
    Checkpoints own = checkpoints(anchor, to);
    save(own, 1);
    EXPECT_EQ(copy(own), "not due");
  }
  Checkpoints empty = checkpoints(true, "elsewhere");
  files.files.clear();
  EXPECT_EQ(copy(empty), "nothing");
}

TEST_F(CheckpointCopy, asks_for_an_anchor_once_where_this_peer_copies_nothing) {
  Checkpoints own = checkpoints(false);
  EXPECT_TRUE(own.asks_for_anchor());
  EXPECT_FALSE(own.asks_for_anchor());
  EXPECT_FALSE(checkpoints(true).asks_for_anchor());
  EXPECT_FALSE(checkpoints(false, "").asks_for_anchor());
}

TEST_F(CheckpointCopy, is_loaded_by_every_peer_that_has_none_or_one_of_a_history_that_comes_after) {
  {
    Checkpoints own = checkpoints();
    save(own, 3);
    ASSERT_EQ(copy(own), "round 3");
  }
  std::erase_if(files.files, [](const auto& file) { return file.first.starts_with("own/"); });
  EXPECT_EQ(loaded(checkpoints(false)), 3U);
  EXPECT_EQ(loaded(checkpoints()), 3U);
  EXPECT_EQ(loaded(checkpoints(false, "")), 0U);
  Checkpoints fresh = checkpoints(false);
  EXPECT_EQ(copy(fresh), "not due") << "an anchor alone writes";
  save(fresh, 2);
  EXPECT_EQ(loaded(checkpoints(false)), 3U) << "the copy is ahead of its own";
  save(fresh, 4);
  EXPECT_EQ(loaded(checkpoints(false)), 4U) << "its own is ahead of the copy";
  for (auto& [path, bytes] : files.files)
    if (path.starts_with("own/")) bytes.back() ^= std::byte{1};
  EXPECT_EQ(loaded(checkpoints(false)), 3U) << "its own ones are broken";
}

TEST_F(CheckpointCopy, of_the_next_round_is_due_once_a_peer_took_a_history_with_fewer_rounds) {
  Checkpoints own{{.folder = "own", .every = 100, .keep = 2},
                  {"7", {}, false},
                  {clock, files, disk, copier, waits, [] {}}};
  save(own, 5);
  own.took_state(records[6]);
  EXPECT_FALSE(own.is_due(records[7])) << "its own one may be of that history";
  own.took_state(records[3]);
  EXPECT_TRUE(own.is_due(records[4]));
  save(own, 4);
  EXPECT_THAT(rounds("own"), ElementsAre(4));
  EXPECT_FALSE(own.is_due(records[5]));
}

TEST_F(CheckpointCopy, is_not_loaded_where_the_own_checkpoint_is_newer) {
  {
    Checkpoints own = checkpoints();
    save(own, 3);
    ASSERT_EQ(copy(own), "round 3");
    save(own, 5);
  }
  EXPECT_EQ(loaded(checkpoints()), 5U);
  EXPECT_EQ(loaded(checkpoints(false)), 5U);
  files.away = "away";
  EXPECT_EQ(loaded(checkpoints()), 5U) << "and nobody needs the copy";
}

TEST_F(CheckpointCopy, that_is_newer_and_cannot_be_used_is_not_passed_over_in_silence) {
  save_twice_and_copy();
  lose("own/round-000006");
  damage("away/round-000006");
  EXPECT_EQ(loaded(checkpoints()), 5U);
  EXPECT_THAT(said(checkpoints()),
              ElementsAre(AllOf(HasSubstr("away/round-000006-"), HasSubstr(" corrupt"))));
  damage("away/round-000005");
  EXPECT_THAT(said(checkpoints()),
              ElementsAre(AllOf(HasSubstr("no checkpoint in away can be used ("),
                                HasSubstr("; the newest one that can be used is own/round-000005-"))));
}

TEST_F(CheckpointCopy, that_cannot_be_reached_may_be_newer) {
  save_twice_and_copy();
  files.away = "away";
  EXPECT_THAT(said(checkpoints()),
              ElementsAre(HasSubstr("away: unreachable: it may hold a newer one; the newest "
                                    "one that can be used is own/round-000006-")));
  lose("own/");
  EXPECT_THAT(said(checkpoints()), ElementsAre("away: unreachable")) << "and does not go on";
}

TEST_F(CheckpointCopy, from_which_the_run_goes_on_is_named_instead_of_a_remedy) {
  save_twice_and_copy();
  damage("own/");
  EXPECT_THAT(said(checkpoints()),
              ElementsAre(AllOf(HasSubstr("no checkpoint in own can be used ("),
                                HasSubstr("; the newest one that can be used is away/round-000006-"),
                                Not(HasSubstr("choose another")))));
  damage("away/");
  EXPECT_THAT(said(checkpoints()), ElementsAre(AllOf(HasSubstr("no checkpoint in own can be used ("),
                                                     HasSubstr("; no checkpoint in away can be used ("),
                                                     HasSubstr("). Restore one of them from a copy"))));
}

TEST_F(CheckpointCopy, that_is_damaged_is_no_matter_where_the_own_one_of_its_round_is_sound) {
  save_twice_and_copy();
  damage("away/round-000006");
  EXPECT_THAT(said(checkpoints()), IsEmpty());
}

TEST_F(CheckpointCopy, by_time_is_due_after_five_minutes_or_when_it_takes_two_percent_of_the_time) {
  Checkpoints own{
      {.folder = "own", .interval = 5min}, {"7", {}, false}, {clock, files, disk, copier, waits, [] {}}};
  EXPECT_FALSE(own.is_due(records[1]));
  clock.time += 5min;
  EXPECT_TRUE(own.is_due(records[1]));
  disk.took = 10s;
  save(own, 1);
  EXPECT_FALSE(own.lacks(records[1]));
  EXPECT_TRUE(own.lacks(records[2]));
  clock.time += 499s;
  EXPECT_FALSE(own.is_due(records[2]));
  clock.time += 1s;
  EXPECT_TRUE(own.is_due(records[2]));
}

TEST_F(CheckpointCopy, of_a_run_that_begins_anew_gets_another_name) {
  const auto set_aside = [&] {
    Checkpoints next = checkpoints();
    next.set_aside(sync::sample::kRun, [](const Status& moved) { EXPECT_TRUE(moved.ok()); });
    disk.run_all();
  };
  {
    Checkpoints own = checkpoints();
    save(own, 1);
    save(own, 2);
  }
  set_aside();
  EXPECT_EQ(loaded(checkpoints()), 0U);
  EXPECT_EQ(files.files.size(), 2U) << "nothing is lost";
  {
    Checkpoints own = checkpoints();
    save(own, 3);
  }
  set_aside();
  EXPECT_EQ(files.files.size(), 1U) << "of the runs before it, one stays";
  set_aside();
  EXPECT_EQ(files.files.size(), 1U);
}

}  // namespace
}  // namespace tw::train
