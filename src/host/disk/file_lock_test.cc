// SPDX-License-Identifier: Apache-2.0
#include "host/disk/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

using Kind = FileLock::Kind;

constexpr FileLock::Range kAll{};

class FileLocks : public testing::Test {
 protected:
  FileLock open() const {
    auto lock = FileLock::open(path_);
    EXPECT_TRUE(lock) << (lock ? "" : lock.error().message);
    return std::move(lock).value();
  }

  /// What another process says, a forked one.
  static bool in_another(const std::function<bool()>& says) {
    const pid_t child = fork();
    if (child == 0) _exit(says() ? 0 : 1);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status == 0;
  }

  /// The process that keeps another one from this lock; nothing: none does.
  FileLock::Holder in_the_way(Kind kind, FileLock::Range range = kAll) const {
    FileLock::Holder holder;
    if (in_another([&] { return !open().lock(kind, range).value(); })) return holder;
    EXPECT_TRUE(in_another([&] { return open().lock(kind, range).value() == getppid(); }));
    return getpid();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/lock";
};

TEST_F(FileLocks, know_whether_their_file_was_removed_or_replaced) {
  const FileLock lock = open();
  EXPECT_TRUE(lock.is_at_its_path());
  ASSERT_EQ(unlink(path_.c_str()), 0);
  EXPECT_FALSE(lock.is_at_its_path());
  const FileLock other = open();
  EXPECT_FALSE(lock.is_at_its_path());
  EXPECT_TRUE(other.is_at_its_path());
}

TEST_F(FileLocks, exclude_other_processes_and_name_the_holder) {
  FileLock lock = open();
  EXPECT_EQ(in_the_way(Kind::exclusive), std::nullopt);
  EXPECT_EQ(lock.lock(Kind::shared, kAll).value(), std::nullopt);
  EXPECT_EQ(in_the_way(Kind::exclusive), getpid());
  EXPECT_EQ(in_the_way(Kind::shared), std::nullopt);
  EXPECT_EQ(lock.lock(Kind::exclusive, kAll).value(), std::nullopt);
  EXPECT_EQ(in_the_way(Kind::shared), getpid());
  lock.unlock(kAll);
  EXPECT_EQ(in_the_way(Kind::exclusive), std::nullopt);
}

TEST_F(FileLocks, are_of_ranges) {
  FileLock lock = open();
  ASSERT_TRUE(lock.lock(Kind::exclusive, {10, 2}));
  EXPECT_EQ(in_the_way(Kind::shared, {0, 10}), std::nullopt);
  EXPECT_EQ(in_the_way(Kind::shared, {12, 0}), std::nullopt);
  EXPECT_EQ(in_the_way(Kind::shared, {11, 0}), getpid());
}

TEST_F(FileLocks, of_one_file_in_one_process_end_with_the_last) {
  FileLock first = open();
  ASSERT_TRUE(first.lock(Kind::shared, kAll));
  {
    FileLock second = open();
    ASSERT_TRUE(second.lock(Kind::shared, kAll));
  }
  EXPECT_EQ(in_the_way(Kind::exclusive), getpid()) << "one that ended took nothing away";
  {
    const FileLock last = std::move(first);
    EXPECT_EQ(in_the_way(Kind::exclusive), getpid());
  }
  first = open();
  EXPECT_EQ(in_the_way(Kind::exclusive), std::nullopt);
}

TEST_F(FileLocks, end_with_their_process_and_not_with_its_children) {
  FileLock lock = open();
  ASSERT_TRUE(lock.lock(Kind::exclusive, kAll));
  EXPECT_TRUE(in_another([] { return true; }));  // its end closes a descriptor of the file
  EXPECT_EQ(in_the_way(Kind::shared), getpid());
  lock.unlock(kAll);
  EXPECT_TRUE(in_another([&] { return !open().lock(Kind::exclusive, kAll).value(); }));
  EXPECT_EQ(in_the_way(Kind::exclusive), std::nullopt);
}

TEST_F(FileLocks, say_why_there_is_no_file) {
  const auto lock = FileLock::open(folder_.path() + "/none/lock");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().message, folder_.path() + "/none/lock: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace tw::host
