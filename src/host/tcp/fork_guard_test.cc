// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/fork_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace tw::host {
namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

TEST(ForkGuard, closes_what_it_guards_in_the_child_alone) {
  std::array<int, 2> pair{}, other{};
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()));
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, other.data()));
  const ForkGuard guard(pair[0]);
  ForkGuard released(other[0]);
  released.release();
  const pid_t child = fork();
  if (child == 0) {
    close_guarded_sockets();
    _exit(is_open(pair[0]) ? 1 : is_open(other[0]) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, WEXITSTATUS(status));
  EXPECT_TRUE(is_open(pair[0]));
  for (const int descriptor : {pair[0], pair[1], other[0], other[1]}) close(descriptor);
}

}  // namespace
}  // namespace tw::host
