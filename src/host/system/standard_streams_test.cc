// SPDX-License-Identifier: Apache-2.0
#include "host/system/standard_streams.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

namespace tw::host {
namespace {

/// What a process of its own returns.
int result_of(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, that_are_closed_give_their_numbers_to_nothing_else) {
  EXPECT_EQ(result_of([] {
              for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
              hold_standard_streams();
              return ::eventfd(0, 0) > STDERR_FILENO ? 0 : 1;
            }),
            0);
  EXPECT_EQ(result_of([] {
              ::close(STDOUT_FILENO);
              hold_standard_streams();
              return ::write(STDOUT_FILENO, "x", 1) < 0 ? errno : 0;
            }),
            EBADF)
      << "as of a closed one";
}

TEST(StandardStreams, that_are_open_stay) {
  EXPECT_EQ(result_of([] {
              int ends[2];
              if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) return 1;
              hold_standard_streams();
              char byte = 0;
              return ::write(STDERR_FILENO, "x", 1) == 1 && ::read(ends[0], &byte, 1) == 1 ? 0 : 2;
            }),
            0);
}

TEST(StandardStreams, of_which_the_reader_is_gone_do_not_end_the_process_that_writes) {
  EXPECT_EQ(result_of([] {
              std::signal(SIGPIPE, SIG_DFL);
              int ends[2];
              if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) return 1;
              write_to_stderr("x");
              char byte = 0;
              if (::read(ends[0], &byte, 1) != 1 || byte != 'x') return 2;
              ::close(ends[0]);
              for (int i = 0; i < 2; ++i) write_to_stderr("y");
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace tw::host
