// SPDX-License-Identifier: Apache-2.0
#include "base/text/write_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/text/text_file.h"

namespace tw {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class WriteFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }

  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }

  static std::string content(const std::string& path) { return read_text_file(path).value(); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    return found;
  }

  std::string folder_ = testing::TempDir() + "tw-write-file-" + std::to_string(getpid());
};

/// A disk of so many bytes, as far as one file shows it.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST_F(WriteFile, replaces_what_was_there) {
  ASSERT_TRUE(write_file(at("a.json"), "one"));
  ASSERT_TRUE(write_file(at("a.json"), "another", 0600));
  EXPECT_EQ(content(at("a.json")), "another");
  EXPECT_EQ(fs::status(at("a.json")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(names(), ElementsAre("a.json"));
}

TEST_F(WriteFile, leaves_what_was_there_when_the_disk_is_full) {
  ASSERT_TRUE(write_file(at("a.json"), "one"));
  const auto write_both = [&] {
    const SmallDisk disk(1000);
    const Status again = write_file(at("a.json"), std::string(5000, 'x'));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message, at("a.json") + ": cannot be written: File too large");
    EXPECT_FALSE(write_file(at("new.json"), std::string(5000, 'x')));
  };
  write_both();
  EXPECT_EQ(content(at("a.json")), "one");
  EXPECT_THAT(names(), ElementsAre("a.json")) << "nothing half-written stays";
}

TEST_F(WriteFile, follows_no_link_and_says_what_is_in_the_way) {
  std::ofstream(at("precious")) << "kept";
  fs::create_symlink(at("precious"), at("a.json"));
  ASSERT_TRUE(write_file(at("a.json"), "one"));
  EXPECT_EQ(content(at("precious")), "kept");
  EXPECT_EQ(content(at("a.json")), "one");
  EXPECT_EQ(write_file(at("none/a.json"), "one").error().message,
            at("none/a.json") + ": cannot be written: No such file or directory");
  fs::create_directories(at("folder"));
  EXPECT_THAT(write_file(at("folder"), "one").error().message, HasSubstr("Is a directory"));
}

TEST_F(WriteFile, writes_to_pipes_and_devices_instead_of_replacing_them) {
  ASSERT_EQ(0, mkfifo(at("pipe").c_str(), 0600));
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(write_file(at("pipe"), "one"));
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 3);
  ::close(reader);
  EXPECT_THAT(names(), ElementsAre("pipe"));
  EXPECT_THAT(write_file("/dev/full", "one").error().message, HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace tw
