// SPDX-License-Identifier: Apache-2.0
#include "host/system/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

namespace tw::host {

void hold_standard_streams() {
  // Opened for the wrong direction, so that using them fails as it does when they are closed.
  for (const auto& [stream, flags] : {std::pair{STDIN_FILENO, O_WRONLY}, std::pair{STDOUT_FILENO, O_RDONLY},
                                      std::pair{STDERR_FILENO, O_RDONLY}})
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", flags);  // takes the lowest free number
}

void write_to_stderr(std::string_view text) {
  sigset_t broken_pipe, before, pending;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  sigpending(&pending);
  const bool is_ours = sigismember(&pending, SIGPIPE) == 0;
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
  constexpr timespec kNow{};
  if (is_ours) sigtimedwait(&broken_pipe, nullptr, &kNow);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tw::host
