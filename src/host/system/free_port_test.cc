// SPDX-License-Identifier: Apache-2.0
#include "host/system/free_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

namespace tw::host {
namespace {

TEST(FreePort, is_one_of_this_machine) {
  const auto port = free_port();
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_GT(port.value(), 1023);
}

/// What free_port() says in a network of its own, whose loopback interface is down; empty: none can be made.
std::string said_without_loopback() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
      const auto port = free_port();
      const std::string text = port ? "a port" : port.error().message;
      (void)!write(ends[1], text.data(), text.size());
    }
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 1024> text{};
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

TEST(FreePort, says_that_the_machine_has_no_loopback_interface) {
  const std::string said = said_without_loopback();
  if (said.empty()) GTEST_SKIP() << "may not make a network here";
  EXPECT_THAT(said, testing::HasSubstr("127.0.0.1, and it has no such address (Network is unreachable)"));
  EXPECT_THAT(said, testing::HasSubstr("--listen HOST:PORT"));
}

}  // namespace
}  // namespace tw::host
