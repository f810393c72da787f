// SPDX-License-Identifier: Apache-2.0
#include "host/system/own_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

using testing::HasSubstr;

class OwnFolder : public testing::Test {
 protected:
  std::string why_not() {
    const Status taken = take_own_folder(path_);
    return taken ? "" : taken.error().message;
  }

  TemporaryFolder around_;
  std::string path_ = around_.path() + "/own";
};

TEST_F(OwnFolder, is_made_for_this_user_alone_and_taken_again) {
  EXPECT_EQ(why_not(), "");

  struct stat made {};

  ASSERT_EQ(lstat(path_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0700U);
  EXPECT_EQ(why_not(), "");
}

TEST_F(OwnFolder, is_no_link_whatever_it_leads_to) {
  const std::string other = around_.path() + "/other";
  ASSERT_TRUE(take_own_folder(other));
  std::filesystem::create_symlink(other, path_);
  EXPECT_EQ(why_not(), path_ + ": expected a folder that only you can enter, but it is a link; remove it");
}

TEST_F(OwnFolder, is_no_file) {
  std::ofstream file(path_);
  EXPECT_THAT(why_not(), HasSubstr("is no folder"));
}

TEST_F(OwnFolder, is_open_to_nobody_else) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0750), 0);
  EXPECT_THAT(why_not(), HasSubstr("is open to others (mode 750); chmod 700 " + path_));
}

TEST_F(OwnFolder, belongs_to_this_user) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  if (chown(path_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root can give a folder away";
  EXPECT_THAT(why_not(), HasSubstr("belongs to user 12345, not to "));
}

}  // namespace
}  // namespace tw::host
