// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on a disk that fails: what a peer that comes back finds.

#include <gtest/gtest.h>

#include "sim/virtual/files.h"
#include "sync/checkpoint.h"
#include "sync/test_state.h"

namespace tw::sim {
namespace {

constexpr std::uint64_t kSeeds = 300;

sync::StateImage state(Round round) {
  static const std::vector<wire::Record> records = sync::sample::history(1, 40);
  return sync::sample::image(records[round]);
}

sync::CheckpointStore store(VirtualFiles& disk, const std::string& process = "1") {
  return sync::CheckpointStore(disk, {"/ckpt", 2, process});
}

/// The round that a new process begins with; 0: none was found. Fails when it is not what was saved then.
Round resumed(VirtualFiles& disk) {
  const auto found = store(disk, "2").load_newest(sync::sample::kRun);
  if (!found || !found.value()) return 0;
  const sync::StateImage& image = found.value()->image;
  const sync::StateImage saved = state(image.record.round);
  EXPECT_EQ(image.record, saved.record);
  EXPECT_EQ(image.parameters, saved.parameters);
  EXPECT_EQ(image.digests, saved.digests);
  return image.record.round;
}

/// Saves rounds 1 to `last`; how many of them failed.
int save_until(VirtualFiles& disk, Round last, Round first = 1) {
  sync::CheckpointStore checkpoints = store(disk);
  int failed = 0;
  for (Round round = first; round <= last; ++round) failed += checkpoints.save(state(round)).ok() ? 0 : 1;
  return failed;
}

/// Four rounds are saved, then the disk says of those up to `last` that they are, and power is lost:
/// resumed().
Round resumed_after(VirtualFiles& disk, DiskFault fault, std::uint64_t seed, Round last) {
  EXPECT_EQ(save_until(disk, 4), 0);
  disk.arm(fault, 0, seed, {});
  EXPECT_EQ(save_until(disk, last, 5), 0);
  Prng random(seed);
  disk.crash(random);
  return resumed(disk);
}

TEST(DiskStory, resumes_at_the_newest_or_the_one_before_when_a_bit_flips) {
  int older = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    VirtualFiles disk;
    ASSERT_EQ(save_until(disk, 4), 0);
    disk.arm(DiskFault::bit_flip, 0, seed, {});
    const Round round = resumed(disk);
    EXPECT_TRUE(round == 4 || round == 3) << round;
    older += round == 3 ? 1 : 0;
  }
  EXPECT_NEAR(older, kSeeds / 2, kSeeds / 5);
}

TEST(DiskStory, tells_of_a_full_disk_and_saves_again_once_there_is_room) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    VirtualFiles disk;
    ASSERT_EQ(save_until(disk, 4), 0);
    disk.arm(DiskFault::full, 0, seed, {});
    sync::CheckpointStore checkpoints = store(disk);
    const Status saved = checkpoints.save(state(5));
    ASSERT_FALSE(saved.ok());
    EXPECT_NE(saved.error().message.find("no space left on device"), std::string::npos);
    EXPECT_EQ(resumed(disk), 4U);
    disk.mend();
    EXPECT_TRUE(checkpoints.save(state(6)).ok());
    EXPECT_EQ(resumed(disk), 6U);
    EXPECT_EQ(disk.list("/ckpt").value().size(), 2U) << "nothing unfinished is left";
  }
}

TEST(DiskStory, survives_input_and_output_errors_at_any_operation) {
  for (int operation = 0; operation < 12; ++operation) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      VirtualFiles disk;
      ASSERT_EQ(save_until(disk, 4), 0);
      disk.arm(DiskFault::error, operation, seed, {});
      (void)save_until(disk, 6, 5);
      disk.mend();
      EXPECT_GE(resumed(disk), 4U) << operation << " " << seed;
      EXPECT_EQ(save_until(disk, 9, 7), 0);
      EXPECT_EQ(resumed(disk), 9U);
    }
  }
}

TEST(DiskStory, resumes_at_the_last_that_was_saved_when_power_goes_in_a_write) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    VirtualFiles disk;
    Prng random(seed);
    ASSERT_EQ(save_until(disk, 4), 0);
    disk.arm(DiskFault::torn_write, 0, seed, {});
    EXPECT_EQ(save_until(disk, 5, 5), 1);
    disk.crash(random);
    EXPECT_EQ(resumed(disk), 4U);
    EXPECT_EQ(save_until(disk, 6, 5), 0);
    EXPECT_EQ(resumed(disk), 6U);
  }
}

TEST(DiskStory, never_takes_content_that_was_lost_for_a_checkpoint) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    VirtualFiles disk;
    EXPECT_EQ(resumed_after(disk, DiskFault::lost_fsync, seed, 5), 4U) << seed;
  }
}

TEST(DiskStory, names_what_is_broken_or_begins_anew_when_a_disk_has_lied_for_long) {
  int found = 0, broken = 0, none = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    VirtualFiles disk;
    Prng random(seed);
    disk.arm(DiskFault::lost_fsync, 0, seed, {});
    ASSERT_EQ(save_until(disk, 5), 0);
    disk.crash(random);
    const auto loaded = store(disk, "2").load_newest(sync::sample::kRun);
    found += loaded && loaded.value() ? 1 : 0;
    none += loaded && !loaded.value() ? 1 : 0;
    broken += loaded ? 0 : 1;
  }
  EXPECT_EQ(found, 0) << "nothing of it can be whole";
  EXPECT_GT(broken, 100);
  EXPECT_GT(none, 20);
}

TEST(DiskStory, resumes_where_the_last_durable_rename_left_it) {
  int rounds[8] = {};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    VirtualFiles disk;
    const Round round = resumed_after(disk, DiskFault::rename_lost, seed, 7);
    ASSERT_TRUE(round >= 4 && round <= 7) << seed;
    ++rounds[round];
    EXPECT_EQ(save_until(disk, 9, 8), 0);
    EXPECT_EQ(resumed(disk), 9U);
  }
  for (const Round round : {4, 5, 6, 7}) EXPECT_GT(rounds[round], 20) << round;
}

}  // namespace
}  // namespace tw::sim
