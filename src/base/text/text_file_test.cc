// SPDX-License-Identifier: Apache-2.0
#include "base/text/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tw {
namespace {

class TextFile : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& content) const {
    std::ofstream(folder_ + "/file", std::ios::binary) << content;
    return folder_ + "/file";
  }

  static std::string complaint(const std::string& path, std::uint64_t most_bytes = kMostTextBytes) {
    const auto text = read_text_file(path, most_bytes);
    return text ? "(none)" : text.error().message;
  }

  std::string folder_ = testing::TempDir() + "tw-text-file";
};

TEST_F(TextFile, is_read_as_a_whole) {
  for (const std::size_t size : {0, 1, 4095, 4096, 4097, 1'000'000}) {
    const std::string content(size, 'x');
    const auto text = read_text_file(write(content));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text.value(), content);
  }
}

TEST_F(TextFile, is_read_from_a_place_on) {
  EXPECT_EQ(read_text_from(write("12345"), 3, 2).value(), "45");
  EXPECT_EQ(read_text_from(write("12345"), 5, 9).value(), "");
  EXPECT_EQ(read_text_from(write("12345"), 9, 9).value(), "") << "it was longer before";
  EXPECT_EQ(read_text_from(write("123456"), 3, 2).value(), "45");
}

TEST_F(TextFile, of_more_bytes_than_allowed_is_refused) {
  EXPECT_EQ(read_text_file(write("12345"), 5).value(), "12345");
  EXPECT_EQ(complaint(write("123456"), 5), folder_ + "/file: cannot be read: it is larger than 5 bytes");
}

TEST_F(TextFile, is_a_regular_file_and_nothing_that_may_never_end) {
  EXPECT_EQ(complaint(folder_), folder_ + ": cannot be read: it is a folder; expected a regular file");
  EXPECT_EQ(complaint("/dev/zero"), "/dev/zero: cannot be read: it is a device; expected a regular file");
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(complaint(pipe), pipe + ": cannot be read: it is a pipe; expected a regular file");
}

TEST_F(TextFile, that_is_not_there_is_named_with_the_cause) {
  EXPECT_EQ(complaint(folder_ + "/none"), folder_ + "/none: cannot be read: No such file or directory");
  EXPECT_NE(complaint(std::string("a\0b", 3)).find("NUL"), std::string::npos);
}

}  // namespace
}  // namespace tw
