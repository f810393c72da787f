// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/files.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>

namespace tw::sim {
namespace {

Status put(world::Files& files, const std::string& path, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return files.write(path, std::span(&part, 1));
}

std::string get(world::Files& files, const std::string& path) {
  const auto content = files.read(path);
  if (!content) return "-";
  std::string text;
  for (const std::byte b : content.value()) text += static_cast<char>(b);
  return text;
}

TEST(VirtualFiles, reads_what_was_written_and_lists_names_sorted) {
  VirtualFiles files;
  ASSERT_TRUE(files.make_folder("/a/b").ok());
  ASSERT_TRUE(put(files, "/a/b/2", "two").ok());
  ASSERT_TRUE(put(files, "/a/b/1", "one").ok());
  ASSERT_TRUE(put(files, "/a/x", "x").ok());
  EXPECT_EQ(get(files, "/a/b/2"), "two");
  EXPECT_EQ(files.list("/a/b").value(), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(files.list("/a").value(), (std::vector<std::string>{"x"}));
  ASSERT_TRUE(files.remove("/a/x").ok());
  EXPECT_EQ(get(files, "/a/x"), "-");
}

TEST(VirtualFiles, names_the_path_that_is_missing) {
  VirtualFiles files;
  EXPECT_NE(files.read("/no").error().message.find("/no"), std::string::npos);
  EXPECT_NE(put(files, "/no/file", "x").error().message.find("/no"), std::string::npos);
  EXPECT_FALSE(files.rename("/no", "/yes").ok());
  EXPECT_FALSE(files.remove("/no").ok());
  EXPECT_FALSE(files.list("/no").ok());
}

TEST(VirtualFiles, loses_new_names_by_chance_in_a_crash_unless_a_rename_made_them_durable) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    VirtualFiles files;
    Prng random(seed);
    ASSERT_TRUE(files.make_folder("/c").ok());
    ASSERT_TRUE(files.make_folder("/t").ok());
    ASSERT_TRUE(put(files, "/t/new", "1").ok());
    ASSERT_TRUE(files.rename("/t/new", "/c/checkpoint").ok());
    ASSERT_TRUE(put(files, "/c/new", "2").ok());
    files.crash(random);
    EXPECT_EQ(get(files, "/c/checkpoint"), "1") << "seed " << seed;
    lost += get(files, "/c/new") == "-" ? 1 : 0;
  }
  EXPECT_GT(lost, 20);
  EXPECT_LT(lost, 80);
}

TEST(VirtualFiles, brings_removed_names_back_by_chance_in_a_crash) {
  int back = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    VirtualFiles files;
    Prng random(seed);
    ASSERT_TRUE(put(files, "/new", "1").ok());
    ASSERT_TRUE(files.rename("/new", "/old").ok());
    ASSERT_TRUE(files.remove("/old").ok());
    files.crash(random);
    back += get(files, "/old") == "1" ? 1 : 0;
  }
  EXPECT_GT(back, 20);
  EXPECT_LT(back, 80);
}

/// A disk with one durable file, /f.
struct Disk : testing::Test {
  Disk() {
    EXPECT_TRUE(put(files, "/new", "old text").ok());
    EXPECT_TRUE(files.rename("/new", "/f").ok());
  }

  void arm(DiskFault fault, int operations = 0, std::uint64_t seed = 1) {
    files.arm(fault, operations, seed, [this] { ++struck; });
  }

  VirtualFiles files;
  int struck = 0;
};

std::string why(const Status& status) { return status ? "" : status.error().message; }

TEST_F(Disk, is_full_until_it_is_mended) {
  arm(DiskFault::full, 1);
  EXPECT_TRUE(put(files, "/a", "1").ok());
  EXPECT_EQ(struck, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(why(put(files, "/b", "long text")), "/b: no space left on device");
  EXPECT_EQ(struck, 1);
  EXPECT_TRUE(std::string("long text").starts_with(get(files, "/b")))
      << "a part is left: " << get(files, "/b");
  EXPECT_TRUE(files.rename("/a", "/c").ok());
  EXPECT_EQ(get(files, "/f"), "old text");
  files.mend();
  EXPECT_TRUE(put(files, "/b", "text").ok());
  EXPECT_EQ(get(files, "/b"), "text");
}

TEST_F(Disk, fails_one_to_three_operations_of_any_sort) {
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    arm(DiskFault::error, 0, seed);
    EXPECT_EQ(files.read("/f").error().message, "/f: input/output error");
    int more = 0;
    while (!files.list("/").ok()) ++more;
    EXPECT_LE(more, 2);
    failed += more;
    EXPECT_EQ(get(files, "/f"), "old text");
  }
  EXPECT_EQ(struck, 100);
  EXPECT_NEAR(failed, 100, 40);
}

TEST_F(Disk, tears_a_write_and_is_dead_until_the_machine_comes_back) {
  int durable = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    VirtualFiles disk;
    Prng random(seed);
    disk.arm(DiskFault::torn_write, 0, seed, [this] { ++struck; });
    EXPECT_EQ(get(disk, "/f"), "-") << "reading is not concerned";
    EXPECT_EQ(why(put(disk, "/f", "new text")), "/f: input/output error");
    EXPECT_FALSE(disk.list("/").ok());
    EXPECT_EQ(why(put(disk, "/g", "x")), "/g: input/output error");
    disk.crash(random);
    const std::string left = get(disk, "/f");
    EXPECT_TRUE(left == "-" || (left.size() < 8 && std::string("new text").starts_with(left))) << left;
    durable += left == "-" ? 0 : 1;
    EXPECT_TRUE(put(disk, "/g", "x").ok());
  }
  EXPECT_EQ(struck, 100);
  EXPECT_GT(durable, 30);
  EXPECT_LT(durable, 100);
}

TEST_F(Disk, loses_content_that_was_said_to_be_durable_in_four_ways) {
  std::map<std::string, int> fates;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    VirtualFiles disk;
    Prng random(seed);
    ASSERT_TRUE(put(disk, "/new", "old text").ok());
    ASSERT_TRUE(disk.rename("/new", "/f").ok());
    disk.arm(DiskFault::lost_fsync, 0, seed, [this] { ++struck; });
    ASSERT_TRUE(put(disk, "/new", "young").ok());
    ASSERT_TRUE(disk.rename("/new", "/f").ok());
    EXPECT_EQ(get(disk, "/f"), "young") << "nobody sees it while the machine is up";
    if (seed % 2 == 0) disk.mend();
    disk.crash(random);
    const std::string left = get(disk, "/f");
    const bool torn = !left.empty() && left.size() < 5 && std::string("young").starts_with(left);
    ++fates[torn ? "torn" : left];
    disk.crash(random);
    EXPECT_EQ(get(disk, "/f"), left) << "what came back is durable";
  }
  EXPECT_EQ(struck, 200);
  for (const char* fate : {"-", "", "torn", "old text"}) EXPECT_GT(fates[fate], 20) << fate;
  EXPECT_EQ(fates.size(), 4U);
}

TEST_F(Disk, flips_one_bit_of_one_file) {
  arm(DiskFault::bit_flip, 2);
  EXPECT_EQ(get(files, "/f"), "old text");
  EXPECT_EQ(get(files, "/f"), "old text");
  const std::string read = get(files, "/f");
  EXPECT_EQ(struck, 1);
  ASSERT_EQ(read.size(), 8U);
  int bits = 0;
  for (std::size_t i = 0; i < read.size(); ++i) {
    bits += std::popcount(static_cast<unsigned char>(read[i] ^ "old text"[i]));
  }
  EXPECT_EQ(bits, 1);
  EXPECT_EQ(get(files, "/f"), read) << "once";
  Prng random(1);
  files.crash(random);
  EXPECT_EQ(get(files, "/f"), read);
}

TEST_F(Disk, waits_with_a_bit_flip_for_a_file_with_bits) {
  VirtualFiles disk;
  disk.arm(DiskFault::bit_flip, 0, 1, [this] { ++struck; });
  ASSERT_TRUE(put(disk, "/e", "").ok());
  EXPECT_EQ(get(disk, "/e"), "");
  EXPECT_EQ(struck, 0);
  ASSERT_TRUE(put(disk, "/e", "x").ok());
  EXPECT_NE(get(disk, "/e"), "x");
  EXPECT_EQ(struck, 1);
}

TEST_F(Disk, undoes_the_last_renames_that_were_not_durable) {
  std::map<std::string, int> left;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    VirtualFiles disk;
    Prng random(seed);
    ASSERT_TRUE(put(disk, "/new", "0").ok());
    ASSERT_TRUE(disk.rename("/new", "/f").ok());
    disk.arm(DiskFault::rename_lost, 0, seed, [this] { ++struck; });
    for (const char* text : {"1", "2"}) {
      ASSERT_TRUE(put(disk, "/new", text).ok());
      ASSERT_TRUE(disk.rename("/new", "/f").ok());
    }
    ASSERT_TRUE(disk.remove("/f").ok());
    disk.crash(random);
    ++left[get(disk, "/f") + get(disk, "/new")];
  }
  EXPECT_EQ(struck, 200);
  for (const char* state : {"01", "12", "2-", "--"}) EXPECT_GT(left[state], 20) << state;
  EXPECT_EQ(left.size(), 4U);
}

TEST_F(Disk, makes_renames_durable_again_once_it_is_mended) {
  arm(DiskFault::rename_lost);
  ASSERT_TRUE(put(files, "/new", "1").ok());
  ASSERT_TRUE(files.rename("/new", "/f").ok());
  files.mend();
  ASSERT_TRUE(put(files, "/new", "2").ok());
  ASSERT_TRUE(files.rename("/new", "/f").ok());
  Prng random(1);
  files.crash(random);
  EXPECT_EQ(get(files, "/f"), "2");
}

TEST_F(Disk, shows_itself_without_being_touched) {
  arm(DiskFault::error);
  VirtualFiles copy = files.without_faults();
  EXPECT_EQ(get(copy, "/f"), "old text");
  ASSERT_TRUE(put(copy, "/f", "other").ok());
  EXPECT_EQ(struck, 0);
  EXPECT_EQ(get(files, "/f"), "-");
  EXPECT_EQ(struck, 1);
}

TEST_F(Disk, forgets_faults_that_wait_when_it_is_mended) {
  arm(DiskFault::full);
  arm(DiskFault::error);
  files.mend();
  EXPECT_TRUE(put(files, "/a", "1").ok());
  EXPECT_EQ(struck, 0);
}

}  // namespace
}  // namespace tw::sim
