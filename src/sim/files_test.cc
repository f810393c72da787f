// SPDX-License-Identifier: Apache-2.0
#include "sim/files.h"

#include <gtest/gtest.h>

#include <string>

namespace tw {
namespace {

Status put(Files& files, const std::string& path, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return files.write(path, std::span(&part, 1));
}

std::string get(Files& files, const std::string& path) {
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

}  // namespace
}  // namespace tw
