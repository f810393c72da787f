// SPDX-License-Identifier: Apache-2.0
#include "host/files_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "host/system/random_os.h"
#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

class DiskFilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder + "/" + name; }

  Status write(const std::string& to, const std::vector<std::string>& parts) {
    std::vector<std::span<const std::byte>> spans;
    for (const auto& part : parts) spans.push_back(std::as_bytes(std::span(part)));
    return files.write(to, spans);
  }

  std::string read(const std::string& from) {
    const auto bytes = files.read(from);
    if (!bytes) return bytes.error().message;
    return {reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()};
  }

  DiskFiles files;
  const TemporaryFolder temporary;
  const std::string& folder = temporary.path();
};

TEST_F(DiskFilesTest, reads_what_was_written_part_by_part) {
  ASSERT_TRUE(write(path("a"), {"one", "", "two"}));
  EXPECT_EQ(read(path("a")), "onetwo");
  ASSERT_TRUE(write(path("a"), {"short"}));
  EXPECT_EQ(read(path("a")), "short");
  ASSERT_TRUE(write(path("empty"), {}));
  EXPECT_EQ(read(path("empty")), "");
  const std::string large(5'000'000, 'x');
  ASSERT_TRUE(write(path("large"), {large, large}));
  EXPECT_EQ(read(path("large")), large + large);
}

TEST_F(DiskFilesTest, reads_files_that_do_not_know_their_size) {
  EXPECT_GT(read("/proc/self/status").size(), 100U);
}

TEST_F(DiskFilesTest, replaces_by_rename) {
  ASSERT_TRUE(write(path("new"), {"new"}));
  ASSERT_TRUE(write(path("old"), {"old"}));
  ASSERT_TRUE(files.rename(path("new"), path("old")));
  EXPECT_EQ(read(path("old")), "new");
  EXPECT_EQ(files.list(folder).value(), std::vector<std::string>{"old"});
}

TEST_F(DiskFilesTest, writes_into_no_file_that_a_link_leads_to) {
  ASSERT_TRUE(write(path("other"), {"kept"}));
  std::filesystem::create_symlink(path("other"), path("a.part"));
  EXPECT_FALSE(write(path("a.part"), {"new"}));
  EXPECT_EQ(read(path("other")), "kept");
}

TEST_F(DiskFilesTest, lists_plain_files_sorted_and_makes_folders_with_parents) {
  ASSERT_TRUE(files.make_folder(path("x/y/z")));
  ASSERT_TRUE(files.make_folder(path("x/y/z")));
  for (const std::string name : {"b", "c", "a"}) ASSERT_TRUE(write(path("x/y/" + name), {name}));
  EXPECT_EQ(files.list(path("x/y")).value(), (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_TRUE(files.remove(path("x/y/b")));
  EXPECT_EQ(files.list(path("x/y")).value(), (std::vector<std::string>{"a", "c"}));
}

TEST_F(DiskFilesTest, names_path_and_cause_of_errors) {
  const std::string none = path("none");
  ASSERT_TRUE(write(path("file"), {"x"}));
  EXPECT_EQ(files.read(none).error().message, "cannot read " + none + ": No such file or directory");
  EXPECT_EQ(files.read(folder).error().message, "cannot read " + folder + ": Is a directory");
  EXPECT_EQ(write(none + "/x", {"x"}).error().message,
            "cannot write " + none + "/x: No such file or directory");
  EXPECT_EQ(write("/dev/full", {"x"}).error().message, "cannot write /dev/full: No space left on device");
  EXPECT_EQ(files.rename(none, path("b")).error().message,
            "cannot rename " + none + " to " + path("b") + ": No such file or directory");
  EXPECT_EQ(files.remove(none).error().message, "cannot remove " + none + ": No such file or directory");
  EXPECT_EQ(files.list(none).error().message, "cannot list " + none + ": No such file or directory");
  EXPECT_TRUE(files.list(none).error().lasting) << "told apart from a folder that cannot be read";
  EXPECT_FALSE(files.list(path("file")).error().lasting);
  EXPECT_EQ(files.make_folder(path("file/x")).error().message,
            "cannot make folder " + path("file/x") + ": Not a directory");
  const std::string refused = "cannot make folder " + path("file");
  EXPECT_THAT(files.make_folder(path("file")).error().message,
              testing::AnyOf(refused + ": Not a directory", refused + ": File exists"))
      << "libstdc++ and libc++ see it differently";
}

TEST_F(DiskFilesTest, tells_of_a_file_that_gets_too_large_on_the_way) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write(path("big"), {std::string(60'000, 'a'), std::string(60'000, 'b')});
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_action);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "cannot write " + path("big") + ": File too large");
}

TEST(OsRandom, does_not_repeat_itself) {
  OsRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.next());
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace tw::host
