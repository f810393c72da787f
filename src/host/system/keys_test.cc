// SPDX-License-Identifier: Apache-2.0
#include "host/system/keys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace tw::host {
namespace {

using namespace std::chrono_literals;

class KeysTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(pipe_.data()), 0); }

  void TearDown() override {
    ::close(pipe_[0]);
    if (pipe_[1] >= 0) ::close(pipe_[1]);
  }

  void type(const std::string& text) {
    ASSERT_EQ(::write(pipe_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  std::array<int, 2> pipe_{-1, -1};
  Loop loop_;
};

TEST_F(KeysTest, come_as_they_are_typed) {
  std::string typed;
  const Keys keys(loop_, pipe_[0], [&](std::string_view bytes) { typed += bytes; });
  type("q");
  EXPECT_TRUE(loop_.run_until([&] { return typed == "q"; }, 10s));
  type("\x1b[A");
  EXPECT_TRUE(loop_.run_until([&] { return typed == "q\x1b[A"; }, 10s));
}

TEST_F(KeysTest, tell_once_that_nothing_comes_any_more) {
  int ends = 0;
  const Keys keys(loop_, pipe_[0], [&](std::string_view bytes) { ends += bytes.empty() ? 1 : 0; });
  ::close(pipe_[1]);
  pipe_[1] = -1;
  EXPECT_TRUE(loop_.run_until([&] { return ends == 1; }, 10s));
  EXPECT_FALSE(loop_.run_until([&] { return ends > 1; }, 20ms));
}

TEST_F(KeysTest, leave_their_file_open_and_blocking) {
  std::string typed;
  {
    const Keys keys(loop_, pipe_[0], [&](std::string_view bytes) { typed += bytes; });
    type("a");
    EXPECT_TRUE(loop_.run_until([&] { return typed == "a"; }, 10s));
  }
  EXPECT_EQ(::fcntl(pipe_[0], F_GETFL) & O_NONBLOCK, 0);
  type("b");
  EXPECT_FALSE(loop_.run_until([&] { return typed != "a"; }, 20ms));
}

}  // namespace
}  // namespace tw::host
