// SPDX-License-Identifier: Apache-2.0
#include "sync/checkpoint.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "sync/test_state.h"

namespace tw::sync {
namespace {

using Bytes = std::vector<std::byte>;

/// A disk in memory that can be full, and whose process can die. Every call costs one step, and every written
/// byte another one. When they are used up, the present operation stays half done and nothing works any more.
class MemoryDisk : public world::Files {
 public:
  std::map<std::string, Bytes> files;
  std::uint64_t steps_left = ~std::uint64_t{0};
  std::uint64_t capacity = ~std::uint64_t{0};
  int writes = 0;
  std::function<void()> before_remove = [] {};
  std::function<void()> before_read = [] {};

  Result<Bytes> read(const std::string& path) override {
    before_read();
    if (!step()) return dead_;
    const auto found = files.find(path);
    if (found == files.end()) return Error{path + ": no such file"};
    return found->second;
  }

  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    if (!step()) return dead_;
    ++writes;
    Bytes& file = files[path];
    file.clear();
    for (const auto part : parts) {
      for (const std::byte byte : part) {
        if (!step()) return dead_;
        if (used() >= capacity) return Error{path + ": no space left on device"};
        file.push_back(byte);
      }
    }
    return Unit{};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (!step()) return dead_;
    if (!files.contains(from)) return Error{from + ": no such file"};
    files[to] = std::move(files[from]);
    files.erase(from);
    return Unit{};
  }

  Status remove(const std::string& path) override {
    before_remove();
    if (!step()) return dead_;
    if (files.erase(path) == 0) return Error{path + ": no such file"};
    return Unit{};
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (!step()) return dead_;
    if (!made_ && files.empty()) return Error{folder + ": no such folder", true};
    return names();
  }

  Status make_folder(const std::string&) override {
    if (!step()) return dead_;
    made_ = true;
    return Unit{};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [path, bytes] : files) names.push_back(path.substr(path.rfind('/') + 1));
    return names;
  }

  /// The same without the digits of the records.
  std::vector<std::string> short_names() const {
    std::vector<std::string> all = names();
    for (std::string& name : all)
      if (name.starts_with("round-0")) name.erase(12, 9);
    return all;
  }

  std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const auto& [path, bytes] : files) sum += bytes.size();
    return sum;
  }

 private:
  bool step() { return steps_left > 0 && steps_left-- > 0; }

  const Error dead_{"killed"};
  bool made_ = false;
};

using Names = std::vector<std::string>;

StateImage state(Round round, Digest run = sample::kRun) {
  static const std::vector<wire::Record> records = sample::history(1, 200);
  wire::Record record = records[round];
  record.run = run;
  return sample::image(record);
}

/// Its file, as the first digits of the record's digest tell.
std::string path_of(const StateImage& image, const std::string& suffix = ".tw") {
  const std::string round = std::to_string(1000000 + image.record.round).substr(1);
  return "ckpt/round-" + round + "-" + to_string(digest_of(image.record)).substr(0, 8) + suffix;
}

std::string path_of(Round round, const std::string& suffix = ".tw") { return path_of(state(round), suffix); }

CheckpointStore store(MemoryDisk& disk, std::size_t keep = 2, const std::string& unique = "42") {
  return CheckpointStore(disk, {"ckpt", keep, unique});
}

/// What a fresh process would load; nothing after an error, too.
std::optional<StateImage> loaded(MemoryDisk& disk) {
  auto found = store(disk).load_newest(sample::kRun);
  if (!found || !found.value()) return std::nullopt;
  return std::move(found.value()->image);
}

std::string load_error(MemoryDisk& disk) {
  const auto found = store(disk).load_newest(sample::kRun);
  return found ? std::string() : found.error().message;
}

TEST(Checkpoint, loads_what_was_saved) {
  MemoryDisk disk;
  ASSERT_TRUE(store(disk).save(state(120)).ok());
  EXPECT_EQ(disk.short_names(), Names{"round-000120.tw"});
  const auto found = store(disk).load_newest(sample::kRun);
  ASSERT_TRUE(found.ok() && found.value());
  EXPECT_TRUE(sample::same(found.value()->image, state(120)));
  EXPECT_TRUE(found.value()->skipped.empty());
}

TEST(Checkpoint, knows_the_rounds_of_a_run_before) {
  for (const Round begun : {0, 1, 100'000}) {
    MemoryDisk disk;
    ASSERT_TRUE(store(disk).save(state(120), {}, begun).ok());
    const auto found = store(disk).load_newest(sample::kRun);
    ASSERT_TRUE(found.ok() && found.value());
    EXPECT_EQ(found.value()->begun, begun);
    EXPECT_TRUE(sample::same(found.value()->image, state(120)));
  }
}

TEST(Checkpoint, finds_none_in_a_missing_or_empty_folder) {
  MemoryDisk disk;
  for (int i = 0; i < 2; ++i) {
    const auto found = store(disk).load_newest(sample::kRun);
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found.value());
    EXPECT_EQ(disk.list("ckpt").ok(), i > 0) << "reading makes no folder";
    ASSERT_TRUE(disk.make_folder("ckpt"));
    disk.files[path_of(1, ".tw.part-7")] = Bytes(3);
    disk.files["ckpt/notes.txt"] = Bytes(3);
  }
}

TEST(Checkpoint, keeps_the_newest_and_leaves_other_files_alone) {
  MemoryDisk disk;
  disk.files["ckpt/round-1.txt"] = Bytes(3);
  disk.files["ckpt/notes.tw"] = Bytes(3);
  auto checkpoints = store(disk, 2);
  for (const Round round : {10, 20, 30, 40}) ASSERT_TRUE(checkpoints.save(state(round)).ok());
  EXPECT_EQ(disk.short_names(), (Names{"notes.tw", "round-000030.tw", "round-000040.tw", "round-1.txt"}));
  ASSERT_TRUE(store(disk, 1, "43").save(state(50)).ok());
  EXPECT_EQ(disk.short_names(), (Names{"notes.tw", "round-000050.tw", "round-1.txt"}));
}

TEST(Checkpoint, stays_loadable_when_the_process_is_killed_at_any_step_of_a_save) {
  for (const std::size_t keep : {1, 2}) {
    MemoryDisk before;
    ASSERT_TRUE(store(before, keep).save(state(10)).ok());
    ASSERT_TRUE(store(before, keep).save(state(20)).ok());
    bool survived = false;
    for (std::uint64_t steps = 0; !survived; ++steps) {
      SCOPED_TRACE(steps);
      MemoryDisk disk = before;
      disk.steps_left = steps;
      survived = store(disk, keep).save(state(30)).ok();
      disk.steps_left = ~std::uint64_t{0};
      const bool renamed = disk.files.contains(path_of(30));
      EXPECT_TRUE(!survived || renamed);
      const auto found = loaded(disk);
      ASSERT_TRUE(found);
      EXPECT_TRUE(sample::same(*found, state(renamed ? 30 : 20)));
      // The next process clears the leftovers, though it has another name.
      ASSERT_TRUE(store(disk, keep, "43").save(state(30)).ok());
      auto later = store(disk, keep, "43");
      for (const Round round : {40, 50}) ASSERT_TRUE(later.save(state(round)).ok());
      EXPECT_EQ(disk.short_names(),
                keep == 1 ? Names{"round-000050.tw"} : (Names{"round-000040.tw", "round-000050.tw"}));
    }
  }
}

TEST(Checkpoint, takes_the_one_before_when_any_bit_of_the_newest_is_flipped) {
  MemoryDisk disk;
  auto checkpoints = store(disk);
  ASSERT_TRUE(checkpoints.save(state(10)).ok());
  ASSERT_TRUE(checkpoints.save(state(20)).ok());
  Bytes& newest = disk.files[path_of(20)];
  for (std::size_t i = 0; i < newest.size() * 8; ++i) {
    const std::byte bit{static_cast<unsigned char>(1U << (i % 8))};
    newest[i / 8] ^= bit;
    const auto found = store(disk).load_newest(sample::kRun);
    ASSERT_TRUE(found.ok() && found.value()) << i;
    ASSERT_TRUE(sample::same(found.value()->image, state(10))) << i;
    ASSERT_EQ(found.value()->skipped.size(), 1U) << i;
    ASSERT_TRUE(found.value()->skipped[0].starts_with("round-000020-")) << found.value()->skipped[0];
    newest[i / 8] ^= bit;
  }
}

TEST(Checkpoint, takes_the_one_before_when_the_newest_is_cut_anywhere_or_has_a_tail) {
  MemoryDisk disk;
  auto checkpoints = store(disk);
  ASSERT_TRUE(checkpoints.save(state(10)).ok());
  ASSERT_TRUE(checkpoints.save(state(20)).ok());
  const Bytes whole = disk.files[path_of(20)];
  for (std::size_t size = 0; size < whole.size() + 3; ++size) {
    if (size == whole.size()) continue;
    disk.files[path_of(20)] = whole;
    disk.files[path_of(20)].resize(size);
    const auto found = loaded(disk);
    ASSERT_TRUE(found) << size;
    ASSERT_TRUE(sample::same(*found, state(10))) << size;
  }
}

TEST(Checkpoint, does_not_believe_a_file_under_the_name_of_another_round) {
  MemoryDisk disk;
  ASSERT_TRUE(store(disk).save(state(10)).ok());
  disk.files[path_of(99)] = disk.files[path_of(10)];
  const auto found = store(disk).load_newest(sample::kRun);
  ASSERT_TRUE(found.ok() && found.value());
  EXPECT_EQ(found.value()->skipped,
            Names{path_of(99).substr(5) + ": it holds the state of " + path_of(10, "").substr(5) +
                  "; the file is removed once the run is past its round"});
}

TEST(Checkpoint, names_all_that_are_broken_rather_than_let_a_run_start_anew) {
  MemoryDisk disk;
  disk.files[path_of(10)] = Bytes(500);
  disk.files[path_of(20)] = {};
  const std::string error = load_error(disk);
  EXPECT_NE(error.find(path_of(10).substr(5) + ": it is not a checkpoint"), std::string::npos) << error;
  EXPECT_NE(error.find(path_of(20).substr(5) + ": it is cut off"), std::string::npos) << error;
}

TEST(Checkpoint, says_what_to_do_when_the_folder_belongs_to_another_run) {
  MemoryDisk disk;
  const Digest other{1, 2};
  ASSERT_TRUE(store(disk).save(state(10, other)).ok());
  const std::string error = load_error(disk);
  EXPECT_NE(error.find("another run"), std::string::npos) << error;
  EXPECT_NE(error.find("another checkpoint folder"), std::string::npos) << error;
}

TEST(Checkpoint, names_the_first_fact_by_which_another_run_differs) {
  MemoryDisk disk;
  const auto with = [&](const std::string& facts, const std::string& layout) {
    return CheckpointStore(disk, {"ckpt", 2, "42", {.layout = layout, .facts = facts, .end = "rounds=9"}});
  };
  ASSERT_TRUE(with("model=a\nbatch=512\nseed=1", "w float32 [3]").save(state(10, {1, 2})).ok());
  const auto why = [&](const std::string& facts, const std::string& layout) {
    const std::string error = with(facts, layout).load_newest(sample::kRun).error().message;
    const std::size_t at = error.find("another run: ") + 13;
    return error.substr(at, error.find(')', at) - at);
  };
  EXPECT_EQ(why("model=a\nbatch=64\nseed=2", "w float32 [3]"), R"(there "batch=512", here "batch=64")");
  EXPECT_EQ(why("model=a\nbatch=512\nseed=1", "w float32 [4]"),
            R"(there "w float32 [3]", here "w float32 [4]")");
  EXPECT_EQ(why("model=a\nbatch=512\nseed=1", ""), R"(there "w float32 [3]", here nothing)");
  EXPECT_EQ(why("model=a\nbatch=512\nseed=1", "w float32 [3]"), "the number of its parameters differs");
}

TEST(Checkpoint, names_files_of_one_reason_together) {
  MemoryDisk disk;
  auto other = store(disk, 3);
  for (const Round round : {4, 5, 6}) ASSERT_TRUE(other.save(state(round, {1, 2})).ok());
  const std::string error = load_error(disk), why = "it is of another run: ";
  EXPECT_EQ(error.find(why), error.rfind(why)) << error;
}

TEST(Checkpoint, keeps_what_it_says_of_its_run) {
  MemoryDisk disk;
  CheckpointStore kept(disk, {"ckpt", 2, "42", {.layout = "w", .facts = "seed=1", .end = "rounds=9"}});
  ASSERT_TRUE(kept.save(state(10)).ok());
  const auto found = store(disk).load_newest(sample::kRun);
  ASSERT_TRUE(found.ok() && found.value());
  EXPECT_EQ(found.value()->words.layout, "w");
  EXPECT_EQ(found.value()->words.facts, "seed=1");
  EXPECT_EQ(found.value()->words.end, "rounds=9");
}

TEST(Checkpoint, never_removes_or_replaces_a_checkpoint_of_another_run) {
  MemoryDisk disk;
  ASSERT_TRUE(store(disk).save(state(10, {1, 2})).ok());
  ASSERT_TRUE(store(disk).save(state(40, {1, 2})).ok());
  auto checkpoints = store(disk, 1);
  for (const Round round : {20, 30, 40}) ASSERT_TRUE(checkpoints.save(state(round)).ok());
  EXPECT_EQ(disk.short_names(), (Names{"round-000010.tw", "round-000040.tw", "round-000040.tw"}));
  EXPECT_TRUE(sample::same(*loaded(disk), state(40)));
}

TEST(Checkpoint, never_removes_one_whose_format_it_does_not_know_but_a_damaged_one) {
  constexpr std::size_t kVersionAt = 16;
  MemoryDisk disk;
  auto checkpoints = store(disk, 3);
  for (const Round round : {4, 5, 6}) ASSERT_TRUE(checkpoints.save(state(round)).ok());
  disk.files[path_of(6)][kVersionAt] ^= std::byte{8};
  disk.files[path_of(5)].pop_back();
  auto again = store(disk, 1);
  const auto found = again.load_newest(sample::kRun);
  ASSERT_TRUE(found.ok() && found.value());
  EXPECT_EQ(found.value()->image.record.round, 4U);
  ASSERT_EQ(found.value()->skipped.size(), 2U);
  EXPECT_NE(found.value()->skipped[0].find("this program reads format 7"), std::string::npos);
  EXPECT_NE(found.value()->skipped[1].find("the file is removed"), std::string::npos);
  for (const Round round : {5, 6, 7, 8}) {
    StateImage image = state(round);
    image.record.restarts = 1;
    ASSERT_TRUE(again.save(image).ok());
  }
  EXPECT_EQ(disk.short_names(), (Names{"round-000006.tw", "round-000008.tw"}));
  EXPECT_TRUE(disk.files.contains(path_of(6)));
}

TEST(Checkpoint, of_another_format_alone_is_not_to_be_restored_from_a_copy) {
  MemoryDisk disk;
  ASSERT_TRUE(store(disk).save(state(6)).ok());
  disk.files[path_of(6)][16] ^= std::byte{8};
  EXPECT_NE(load_error(disk).find("Resume it with the version that wrote them"), std::string::npos);
}

TEST(Checkpoint, shows_its_head_by_its_beginning_alone) {
  MemoryDisk disk;
  CheckpointStore kept(disk, {"ckpt", 2, "42", {.layout = "w", .facts = "seed=1", .end = "rounds=9"}});
  ASSERT_TRUE(kept.save(state(10)).ok());
  const Bytes& file = disk.files[path_of(10)];
  const auto head = read_head(std::span(file).first(file.size() - 1));
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head.value().record.round, 10U);
  EXPECT_EQ(head.value().words.facts, "seed=1");
  EXPECT_FALSE(read_head(std::span(file).first(40)).ok());
}

TEST(Checkpoint, leaves_the_former_ones_loadable_when_the_disk_is_full) {
  MemoryDisk disk;
  auto checkpoints = store(disk);
  ASSERT_TRUE(checkpoints.save(state(10)).ok());
  const std::uint64_t one = disk.used();
  for (std::uint64_t room = 0; room < one; room += 7) {
    disk.capacity = one + room;
    const Status full = checkpoints.save(state(20));
    ASSERT_FALSE(full.ok());
    EXPECT_NE(full.error().message.find("no space left"), std::string::npos);
    EXPECT_EQ(disk.short_names(), Names{"round-000010.tw"});
    EXPECT_TRUE(sample::same(*loaded(disk), state(10)));
  }
  disk.capacity = 2 * one;
  EXPECT_TRUE(checkpoints.save(state(20)).ok());
  EXPECT_TRUE(sample::same(*loaded(disk), state(20)));
}

TEST(Checkpoint, writes_once_where_peers_share_a_folder) {
  MemoryDisk disk;
  auto mine = store(disk, 2, "42");
  auto theirs = store(disk, 2, "43");
  for (const Round round : {10, 20, 30}) {
    ASSERT_TRUE(mine.save(state(round)).ok());
    ASSERT_TRUE(theirs.save(state(round)).ok());
  }
  EXPECT_EQ(disk.writes, 3);
  EXPECT_EQ(disk.short_names(), (Names{"round-000020.tw", "round-000030.tw"}));
}

TEST(Checkpoint, does_not_mind_when_another_peer_removes_a_file_first) {
  MemoryDisk disk;
  auto mine = store(disk, 1);
  ASSERT_TRUE(mine.save(state(10)).ok());
  disk.before_remove = [&] { disk.files.erase(path_of(10)); };
  EXPECT_TRUE(mine.save(state(20)).ok());
}

TEST(Checkpoint, leaves_the_unfinished_file_of_another_peer_alone_while_it_may_be_written) {
  MemoryDisk disk;
  disk.files[path_of(30, ".tw.part-7")] = Bytes(3);
  disk.files[path_of(20, ".tw.part-7")] = Bytes(3);
  disk.files[path_of(19, ".tw.part-7")] = Bytes(3);
  disk.files[path_of(30, ".tw.part-42")] = Bytes(3);
  auto mine = store(disk, 2);
  ASSERT_TRUE(mine.save(state(20)).ok());
  ASSERT_TRUE(mine.save(state(25)).ok());
  EXPECT_EQ(disk.short_names(), (Names{"round-000020.tw", "round-000020.tw.part-7", "round-000025.tw",
                                       "round-000030.tw.part-7"}));
}

TEST(Checkpoint, of_a_complete_run_gives_way_to_those_of_the_run_after_it) {
  StateImage end = state(9), of_minority = state(3);
  end.record.last = true;
  end.record.members = {{PeerId{1}, "former:1", 77}};
  of_minority.record.awaited = {PeerId{2}};
  MemoryDisk disk;
  ASSERT_TRUE(CheckpointStore(disk, {"ckpt", 2, "a"}).save(end));
  ASSERT_TRUE(CheckpointStore(disk, {"ckpt", 2, "b"}).save(of_minority));
  EXPECT_EQ(disk.short_names(), (Names{"round-000003.tw", "round-000009.tw"}))
      << "the others may have come so far";
  ASSERT_TRUE(CheckpointStore(disk, {"ckpt", 2, "b"}).save(state(4)));
  EXPECT_EQ(disk.short_names(), (Names{"round-000003.tw", "round-000004.tw", "round-000009.tw.old"}));
  const auto loaded = CheckpointStore(disk, {"ckpt", 2, "c"}).load_newest(sample::kRun);
  ASSERT_TRUE(loaded && loaded.value());
  EXPECT_EQ(loaded.value()->image.record.round, 4U);
}

TEST(Checkpoint, reads_the_newest_of_a_folder_whose_run_replaces_all_of_them_meanwhile) {
  MemoryDisk disk;
  CheckpointStore run = store(disk, 1);
  ASSERT_TRUE(run.save(state(7)));
  bool first = true;
  disk.before_read = [&] {
    if (std::exchange(first, false)) {
      ASSERT_TRUE(run.save(state(9)));
    }
  };
  const auto newest = read_newest_checkpoint(disk, "ckpt");
  ASSERT_TRUE(newest && newest.value()) << (newest ? "none" : newest.error().message);
  EXPECT_EQ(newest.value()->image.record.round, 9U);
  EXPECT_EQ(newest.value()->skipped, Names{});
}

TEST(Checkpoint, of_the_last_round_stays_when_a_slower_peer_of_the_run_saves_an_earlier_one) {
  StateImage end = state(9), earlier = state(8);
  end.record.last = true;
  for (StateImage* image : {&end, &earlier}) image->record.members = {{PeerId{1}, "here:1", 77}};
  MemoryDisk disk;
  ASSERT_TRUE(CheckpointStore(disk, {"ckpt", 2, "a"}).save(end));
  ASSERT_TRUE(CheckpointStore(disk, {"ckpt", 2, "b"}).save(earlier));
  EXPECT_EQ(disk.short_names(), (Names{"round-000008.tw", "round-000009.tw"}));
}

TEST(Checkpoint, replaces_one_that_is_broken) {
  MemoryDisk disk;
  disk.files[path_of(20)] = Bytes(100);
  ASSERT_TRUE(store(disk).save(state(20)).ok());
  EXPECT_TRUE(sample::same(*loaded(disk), state(20)));
}

/// Peers 1 and 2 decide rounds until 20. Then peer 2 is cut off and goes on alone, while the others go on
/// with peer 3.
class Fork : public ::testing::Test {
 protected:
  using Members = std::vector<wire::Member>;

  static std::vector<wire::Record> after(wire::Record head, Round last, const Members& members) {
    std::vector<wire::Record> records;
    for (; head.round < last; records.push_back(head)) {
      const wire::Record before = head;
      ++head.round;
      head.parent = digest_of(before);
      head.first_sample += before.samples;
      head.samples = 64;
      head.members = members;
      head.minority = members.size() == 1 && before.members != members;
      swarm::continue_lineage(head, before);
    }
    return records;
  }

  Fork() {
    wire::Record begun;
    begun.run = sample::kRun;
    begun.members = all;
    common = after(begun, 20, all);
    alone = after(common.back(), 80, {two});
    others = after(common.back(), 40, {one, three});
  }

  static StateImage image(const wire::Record& record) { return sample::image(record); }

  Round resumed() { return loaded(disk)->record.round; }

  wire::Member one{PeerId{1}, "a:1"}, two{PeerId{2}, "b:1"}, three{PeerId{3}, "c:1"};
  Members all{one, two, three};
  std::vector<wire::Record> common, alone, others;
  MemoryDisk disk;
};

TEST_F(Fork, loads_the_history_of_the_majority_however_many_rounds_the_other_one_has) {
  auto first = store(disk, 2, "1");
  auto second = store(disk, 2, "2");
  ASSERT_TRUE(first.save(image(common.back())).ok());
  for (const wire::Record& record : alone) ASSERT_TRUE(second.save(image(record)).ok());
  EXPECT_EQ(resumed(), 80U) << "it has all that the older one has, and goes on from there";
  ASSERT_TRUE(first.save(image(others.front())).ok());
  EXPECT_EQ(resumed(), 21U);
  for (const wire::Record& record : others) ASSERT_TRUE(first.save(image(record)).ok());
  EXPECT_EQ(resumed(), 40U);
  EXPECT_EQ(disk.short_names(), (Names{"round-000039.tw", "round-000040.tw"}));
}

TEST_F(Fork, keeps_what_a_peer_that_is_cut_off_saved_last_beside_those_of_the_others) {
  auto first = store(disk, 2, "1");
  auto second = store(disk, 2, "2");
  for (const wire::Record& record : others) ASSERT_TRUE(first.save(image(record)).ok());
  ASSERT_TRUE(second.save(image(alone[0])).ok());
  ASSERT_TRUE(second.save(image(alone[1])).ok());
  EXPECT_EQ(disk.short_names(), (Names{"round-000022.tw", "round-000039.tw", "round-000040.tw"}));
  EXPECT_EQ(resumed(), 40U);
}

TEST_F(Fork, a_peer_that_gave_its_history_up_removes_its_own_later_checkpoints_alone) {
  auto first = store(disk, 3, "1");
  auto second = store(disk, 3, "2");
  ASSERT_TRUE(second.save(image(alone[58])).ok());
  ASSERT_TRUE(second.save(image(alone[59])).ok());
  ASSERT_TRUE(first.save(image(others[0])).ok());
  EXPECT_EQ(disk.names().size(), 3U) << "peer 2 may live on it";
  ASSERT_TRUE(store(disk, 3, "2").save(image(others[1])).ok());
  EXPECT_EQ(disk.short_names(), (Names{"round-000021.tw", "round-000022.tw"}));
}

TEST_F(Fork, what_was_resumed_from_a_checkpoint_goes_before_it_though_no_majority_came_back) {
  const wire::Record saved = others.back();
  const wire::Record again = swarm::restarted(saved, {two});
  ASSERT_LT(again.majority_samples, saved.majority_samples) << "a member may have the record itself";
  ASSERT_TRUE(store(disk, 2, "1").save(image(saved)).ok());
  const auto later = after(again, 45, {two});
  ASSERT_FALSE(later.back().awaited.empty());
  MemoryDisk before = disk;
  ASSERT_TRUE(store(disk, 2, "2").save(image(later.back()), digest_of(saved)).ok());
  EXPECT_EQ(resumed(), 45U);
  EXPECT_EQ(disk.short_names(), Names{"round-000045.tw"});
  disk.files.insert(before.files.begin(), before.files.end());
  EXPECT_EQ(resumed(), 45U) << "also before the other one is removed";
}

TEST_F(Fork, what_was_resumed_goes_before_it_in_the_folder_of_a_peer_that_joined_then_too) {
  const wire::Record saved = others.back();
  const auto later = after(swarm::restarted(saved, {two}), 45, {two});
  ASSERT_TRUE(store(disk, 2, "3").save(image(saved)).ok());
  ASSERT_TRUE(store(disk, 2, "4").save(image(later.back())).ok()) << "it knows no origin";
  EXPECT_EQ(resumed(), 45U);
  ASSERT_TRUE(store(disk, 2, "1").save(image(after(saved, 41, {one, three}).back())).ok());
  EXPECT_EQ(resumed(), 41U) << "a majority went on";
}

TEST_F(Fork, a_peer_that_took_the_history_of_an_older_checkpoint_removes_its_own_that_went_before) {
  ASSERT_TRUE(store(disk, 2, "2").save(image(others[19])).ok());
  const auto later = after(swarm::restarted(others[9], {one}), 33, {one});
  ASSERT_TRUE(store(disk, 2, "1").save(image(later[0])).ok());
  EXPECT_EQ(resumed(), 40U) << "peer 2 may live on it";
  ASSERT_TRUE(store(disk, 2, "2").save(image(later[1])).ok());
  EXPECT_EQ(resumed(), 32U);
}

}  // namespace
}  // namespace tw::sync
