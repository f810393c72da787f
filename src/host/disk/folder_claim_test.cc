// SPDX-License-Identifier: Apache-2.0
#include "host/disk/folder_claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

wire::Token::Key key(unsigned char first) { return {std::byte{first}, std::byte{7}}; }

class FolderClaims : public testing::Test {
 protected:
  /// Whether another process may begin or resume the run of this key; it names this one if not.
  bool another_takes(const wire::Token::Key& key) const {
    const pid_t child = fork();
    if (child == 0) {
      const auto holder = FolderClaim(path_, key).take();
      _exit(!holder ? 0 : *holder == getppid() ? 1 : 2);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_LE(WEXITSTATUS(status), 1);
    return WEXITSTATUS(status) == 0;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/run/checkpoints";
};

TEST_F(FolderClaims, keep_another_run_out_and_let_peers_of_the_same_in) {
  {
    FolderClaim claim(path_, key(2));
    EXPECT_EQ(claim.take(), std::nullopt);
    for (const unsigned char other : {0, 1, 3, 255}) EXPECT_FALSE(another_takes(key(other))) << +other;
    EXPECT_TRUE(another_takes(key(2))) << "it was started again";
  }
  EXPECT_TRUE(another_takes(key(1))) << "it has ended";
}

TEST_F(FolderClaims, of_two_peers_in_a_process_end_with_the_last) {
  FolderClaim first(path_, key(1));
  ASSERT_EQ(first.take(), std::nullopt);
  {
    FolderClaim second(path_, key(1));
    ASSERT_EQ(second.take(), std::nullopt);
  }
  EXPECT_FALSE(another_takes(key(2)));
}

TEST_F(FolderClaims, turn_nobody_away_where_the_folder_cannot_be_written) {
  std::ofstream(folder_.path() + "/file") << "in the way";
  FolderClaim claim(folder_.path() + "/file", key(1));
  EXPECT_EQ(claim.take(), std::nullopt);
}

}  // namespace
}  // namespace tw::host
