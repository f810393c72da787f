// SPDX-License-Identifier: Apache-2.0
#include "host/store/range_cache.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "host/store/file_store.h"
#include "host/store/stores.h"
#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

using testing::HasSubstr;

/// Answers with as many letters as are asked for, and counts.
class CountingStore final : public world::Store {
 public:
  int reads = 0;

  void read(const world::Extent& extent, Read done) override {
    ++reads;
    std::string bytes;
    for (std::uint64_t i = 0; i < extent.length; ++i)
      bytes += static_cast<char>('a' + (extent.offset + i) % 26);
    done(bytes);
  }

  void look(const std::string&, Looked done) override { done(world::ObjectFacts{100, "v"}); }
};

class CachedRanges : public testing::Test {
 protected:
  static constexpr std::uint64_t kSum = 32;  // of each file

  void overwrite_files(char byte) const {
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      std::ofstream(file.path(), std::ios::binary | std::ios::in).seekp(3) << byte;
  }

  std::uint64_t kept_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      bytes += file.path().extension() == ".range" ? file.file_size() : 0;
    return bytes;
  }

  TemporaryFolder folder_;
  CountingStore store_;
};

TEST_F(CachedRanges, of_a_url_that_is_signed_anew_are_the_same) {
  RangeCache cache(store_, folder_.path(), 1000);
  const auto read = [&](const std::string& query) {
    EXPECT_TRUE(read_now(cache, {"https://host/x.tar?" + query, 0, 5, "v"}));
    return store_.reads;
  };
  EXPECT_EQ(read("X-Amz-Date=1&id=3&X-Amz-Signature=a"), 1);
  EXPECT_EQ(read("X-Amz-Date=2&id=3&X-Amz-Signature=b"), 1);
  EXPECT_EQ(read("id=4&X-Amz-Signature=b"), 2);
  EXPECT_EQ(read("sv=1&se=2&sig=a"), 3);
  EXPECT_EQ(read("sv=1&se=3&sig=b"), 3);
  EXPECT_EQ(read("se=3"), 4);
  EXPECT_EQ(read("se=4"), 5);
}

TEST_F(CachedRanges, are_read_once_also_in_parts_and_by_the_next_process) {
  RangeCache cache(store_, folder_.path(), 1000);
  EXPECT_EQ(read_now(cache, {"x", 10, 20, "v"}).value(), "klmnopqrstuvwxyzabcd");
  EXPECT_EQ(read_now(cache, {"x", 12, 3, "v"}).value(), "mno");
  RangeCache next(store_, folder_.path(), 1000);
  EXPECT_EQ(read_now(next, {"x", 20, 10, "v"}).value(), "uvwxyzabcd");
  EXPECT_EQ(store_.reads, 1);
  EXPECT_EQ(next.bytes(), 20U + kSum);
}

TEST_F(CachedRanges, of_another_version_or_object_are_read) {
  RangeCache cache(store_, folder_.path(), 1000);
  for (const auto& [object, version] : {std::pair{"x", "v"}, {"x", "w"}, {"y", "v"}, {"x", ""}, {"x", ""}})
    ASSERT_TRUE(read_now(cache, {object, 0, 5, version}));
  EXPECT_EQ(store_.reads, 5);
}

TEST_F(CachedRanges, of_urls_that_differ_in_their_query_are_others) {
  RangeCache cache(store_, folder_.path(), 1000);
  for (const char* object : {"http://h/get?id=1", "http://h/get?id=2", "http://me@h/get?id=1"})
    ASSERT_TRUE(read_now(cache, {object, 0, 5, "Sat, 28 Nov 2026 10:00:00 GMT"}));
  EXPECT_EQ(store_.reads, 3);
}

TEST_F(CachedRanges, that_are_damaged_are_read_again) {
  RangeCache cache(store_, folder_.path(), 1000);
  ASSERT_TRUE(read_now(cache, {"x", 0, 20, "v"}));
  overwrite_files('7');
  EXPECT_EQ(read_now(cache, {"x", 2, 3, "v"}).value(), "cde");
  EXPECT_EQ(store_.reads, 2);
  EXPECT_EQ(cache.bytes(), 3U + kSum) << "the damaged one is gone";
  EXPECT_EQ(kept_bytes(), 3U + kSum);
}

TEST_F(CachedRanges, without_a_checksum_are_read_again) {
  {
    RangeCache cache(store_, folder_.path(), 1000);
    ASSERT_TRUE(read_now(cache, {"x", 0, 20, "v"}));
  }
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    std::filesystem::resize_file(file.path(), 20);  // as an earlier version wrote it
  RangeCache cache(store_, folder_.path(), 1000);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(read_now(cache, {"x", 0, 3, "v"}).value(), "abc");
  EXPECT_EQ(store_.reads, 2);
}

TEST_F(CachedRanges, are_passed_by_and_replaced_when_read_anew) {
  RangeCache cache(store_, folder_.path(), 1000);
  ASSERT_TRUE(read_now(cache, {"x", 0, 20, "v"}));
  EXPECT_EQ(read_now(cache, {"x", 2, 3, "v", true}).value(), "cde");
  EXPECT_EQ(store_.reads, 2);
  EXPECT_EQ(kept_bytes(), 3U + kSum);
  ASSERT_TRUE(read_now(cache, {"x", 2, 3, "v"}));
  EXPECT_EQ(store_.reads, 2);
}

TEST_F(CachedRanges, stay_below_the_cap) {
  std::ofstream(folder_.path() + "/thesis.tex") << "of the owner of the folder";
  RangeCache cache(store_, folder_.path(), 1000);
  for (std::uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(read_now(cache, {"x", i * 100, 100, "v"}));
  EXPECT_LE(cache.bytes(), 1000U);
  EXPECT_LE(kept_bytes(), 1000U);
  EXPECT_GE(kept_bytes(), 700U);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/thesis.tex"));
}

TEST_F(CachedRanges, of_several_processes_stay_near_one_cap) {
  constexpr std::uint64_t kCap = 16'000;
  RangeCache first(store_, folder_.path(), kCap), second(store_, folder_.path(), kCap);
  for (std::uint64_t i = 0; i < 130; ++i) {
    ASSERT_TRUE(read_now(first, {"x", i * 100, 100, "v"}));
    ASSERT_TRUE(read_now(second, {"y", i * 100, 100, "v"}));
    EXPECT_LE(kept_bytes(), kCap + kCap / 8) << i;
  }
  EXPECT_GE(kept_bytes(), kCap * 8 / 10);
}

TEST_F(CachedRanges, that_were_cut_off_or_taken_away_are_read_again) {
  {
    RangeCache cache(store_, folder_.path(), 1000);
    ASSERT_TRUE(read_now(cache, {"x", 0, 20, "v"}));
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      std::filesystem::resize_file(file.path(), 10);
    EXPECT_EQ(read_now(cache, {"x", 0, 20, "v"}).value().size(), 20U);
    EXPECT_EQ(store_.reads, 2);
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      std::filesystem::resize_file(file.path(), 10);
  }
  std::ofstream(folder_.path() + "/123-1.part") << "of a process that was killed";
  RangeCache next(store_, folder_.path(), 1000);
  EXPECT_EQ(next.bytes(), 0U);
  EXPECT_EQ(read_now(next, {"x", 0, 20, "v"}).value().size(), 20U);
  EXPECT_EQ(store_.reads, 3);
}

TEST_F(CachedRanges, that_cannot_be_written_are_read_and_told_once) {
  std::vector<std::string> told;
  RangeCache cache(store_, "/proc/nowhere", 1000, [&](const std::string& text) { told.push_back(text); });
  EXPECT_TRUE(read_now(cache, {"x", 0, 5, "v"}));
  EXPECT_TRUE(read_now(cache, {"x", 5, 5, "v"}));
  EXPECT_THAT(told,
              testing::ElementsAre("cache=/proc/nowhere: cannot be written, what is read is not kept: No "
                                   "such file or directory"));
}

TEST_F(CachedRanges, of_a_folder_that_cannot_be_used_are_an_error) {
  const std::string file = folder_.path() + "/file";
  std::ofstream(file) << "x";
  EXPECT_EQ(RangeCache::make_folder(file).error().message,
            "cache=" + file + ": expected a folder that can be made and written: Not a directory");
  EXPECT_TRUE(RangeCache::make_folder(folder_.path() + "/new/folder"));
  Stores stores;
  EXPECT_THAT(stores.keep_in("/proc/nowhere", 1000).error().message,
              HasSubstr("cache=/proc/nowhere: expected a folder that can be made and written"));
}

TEST_F(CachedRanges, come_from_files_by_size_and_time) {
  const std::string path = folder_.path() + "/x.tar";
  std::ofstream(path) << "0123456789";
  FileStore store;
  const auto facts = look_now(store, path);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts.value().bytes, 10U);
  EXPECT_EQ(read_now(store, {"file://" + path, 3, 4, facts.value().version}).value(), "3456");
  EXPECT_THAT(read_now(store, {path, 8, 4, facts.value().version}).error().message,
              HasSubstr("it has 10 bytes"));
  EXPECT_THAT(read_now(store, {path, 0, 4, "0-0"}).error().message,
              HasSubstr("it changed since its index was made: expected 0 bytes of 1970-01-01, found "));
  EXPECT_THAT(look_now(store, path + ".away").error().message, HasSubstr("No such file"));
  EXPECT_THAT(look_now(store, folder_.path()).error().message, HasSubstr("expected a plain file"));
}

}  // namespace
}  // namespace tw::host
