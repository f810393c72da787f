// SPDX-License-Identifier: Apache-2.0
#include "bind/tradewind_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "host/files_disk.h"
#include "host/system/temporary_folder.h"
#include "sync/checkpoint.h"

namespace tw::bind {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A folder with the checkpoint of a model of three values and an optimizer with two.
class StoredModel : public testing::Test {
 protected:
  ~StoredModel() override { tw_checkpoint_close(checkpoint_); }

  void save(Round round) {
    wire::Record record;
    record.run = {1, 2};
    record.round = round;
    record.samples = 8;
    const float model[] = {0.5F, 1.5F, static_cast<float>(round)}, momentum[] = {7, 8};
    const std::span<const float> parts[] = {model, momentum};
    sync::CheckpointStore store(disk_, {.folder = folder_, .unique = "1", .words = {.layout = "three"}});
    ASSERT_TRUE(store.save(sync::freeze(record, parts, 8)));
  }

  int open(const std::string& path) {
    tw_checkpoint_close(std::exchange(checkpoint_, nullptr));
    return tw_checkpoint_open(path.c_str(), &checkpoint_, &stored_);
  }

  const host::TemporaryFolder place_;
  const std::string folder_ = place_.path() + "/kept";
  host::DiskFiles disk_;
  tw_checkpoint* checkpoint_ = nullptr;
  tw_stored stored_{};
};

TEST_F(StoredModel, is_that_of_the_newest_checkpoint_of_a_folder) {
  save(3);
  save(4);
  ASSERT_EQ(open(folder_ + "/"), TW_OK) << tw_last_error();
  EXPECT_EQ(stored_.round, 4U);
  EXPECT_STREQ(stored_.layout, "three");
  EXPECT_STREQ(stored_.skipped, "");
  std::vector<float> values(3);
  ASSERT_EQ(tw_checkpoint_values(checkpoint_, values.data(), values.size()), TW_OK) << tw_last_error();
  EXPECT_THAT(values, ElementsAre(0.5F, 1.5F, 4.0F));
}

TEST_F(StoredModel, is_in_a_file_of_any_name) {
  save(3);
  const std::filesystem::path best = place_.path() + "/best.ckpt";
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    std::filesystem::copy_file(entry.path(), best);
  for (const std::string& path : {best.string(), "file:" + best.string(), "file:" + folder_}) {
    ASSERT_EQ(open(path), TW_OK) << tw_last_error();
    EXPECT_EQ(stored_.round, 3U) << path;
  }
  std::filesystem::resize_file(best, 5);
  EXPECT_EQ(open(best), TW_FAILED);
  EXPECT_THAT(tw_last_error(), StartsWith(best.string() + ": ")) << "of the file, not of a folder";
}

TEST_F(StoredModel, is_not_where_no_checkpoint_can_be) {
  const auto refusal = [this](const std::string& path) {
    return open(path) == TW_OK ? "none" : std::string(tw_last_error());
  };
  EXPECT_EQ(refusal(""), "an empty path: expected a checkpoint (round-NNNNNN-*.tw) or a folder of them");
  EXPECT_THAT(refusal("file:kept"), HasSubstr("file:kept: No such file or directory; expected a checkpoint"));
  EXPECT_THAT(refusal("s3://"),
              StartsWith("s3://: expected s3://BUCKET/KEY with a bucket of 3 to 63 letters"));
  EXPECT_THAT(refusal("gs://a/b/"),
              StartsWith("gs://a/b: expected gs://BUCKET/KEY with a bucket of 3 to 63"));
}

TEST_F(StoredModel, is_refused_with_another_number_of_values) {
  save(3);
  ASSERT_EQ(open(folder_), TW_OK) << tw_last_error();
  std::vector<float> values(6);
  for (const std::size_t count : {0, 2, 4, 5, 6})
    EXPECT_EQ(tw_checkpoint_values(checkpoint_, values.data(), count), TW_MISUSE) << count;
  EXPECT_STREQ(tw_last_error(), "6 values: the whole state has 5");
}

TEST_F(StoredModel, is_never_that_of_a_broken_file) {
  EXPECT_EQ(open(folder_), TW_MISUSE);
  EXPECT_THAT(tw_last_error(), HasSubstr(folder_ + ": No such file"));
  save(3);
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) file = entry.path();
  ASSERT_EQ(open(file), TW_OK) << tw_last_error();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  for (const std::string& path : {file, folder_}) {
    EXPECT_EQ(open(path), TW_FAILED);
    EXPECT_EQ(tw_last_error(), file + ": it is cut off");
  }
  save(4);
  ASSERT_EQ(open(folder_), TW_OK) << tw_last_error();
  std::filesystem::remove(file);
  EXPECT_EQ(open(place_.path()), TW_MISUSE);
  EXPECT_THAT(tw_last_error(), EndsWith(": expected a checkpoint (round-NNNNNN-*.tw) or a folder of them"));
}

}  // namespace
}  // namespace tw::bind
