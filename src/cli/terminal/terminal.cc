// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/terminal.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/cause_text.h"
#include "base/text/printable.h"
#include "cli/commands.h"

namespace tw::cli {
namespace {

/// What a pipe takes at once or not at all (PIPE_BUF of Linux).
constexpr std::size_t kAtOnce = 4096;
/// How long a message about a failure waits for its reader.
constexpr int kPatience_ms = 200;

int first_cause = 0;  ///< errno of the first result that could not be written

void note_cause() {
  if (first_cause == 0) first_cause = errno == 0 ? EIO : errno;
}

/// A buffer that cannot be written is lost to the next flush: only this one knows the cause.
void flush_out() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_cause();
}

bool is_ready(int file, int wait_ms) {
  pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
  return ::poll(&ready, 1, wait_ms) == 1;
}

/// Gives up where it would wait longer, and where nothing can be written; false then.
bool write_some(int file, std::string_view text, int wait_ms) {
  while (!text.empty() && is_ready(file, wait_ms)) {
    const ssize_t written = ::write(file, text.data(), std::min(text.size(), kAtOnce));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (!text.empty()) errno = 0;  // nothing is wrong: its reader is slow
  return text.empty();
}

}  // namespace

void print_out_text(std::string_view text) {
  const std::string shown = printable(text);
  errno = 0;
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size()) note_cause();
}

void print_out_now(std::string_view text) {
  print_out_text(text);
  flush_out();
}

void show_news(std::string_view line) {
  flush_out();  // results of before come before it
  errno = 0;
  if (write_some(STDOUT_FILENO, printable(line) + '\n', 0)) return;
  const bool is_read_no_more = errno == EPIPE || errno == EIO;
  if (errno != 0 && !is_read_no_more) note_cause();
}

void show_aside(std::string_view line) { write_some(STDERR_FILENO, printable(line) + '\n', kPatience_ms); }

void show_raw(std::string_view text) { write_some(STDERR_FILENO, text, 0); }

bool show_frame(std::string_view text) {
  flush_out();
  return write_some(STDOUT_FILENO, text, kPatience_ms);
}

int finish_output(int code) {
  flush_out();
  if (first_cause == 0) return code;
  if (first_cause == EPIPE && code == kDone) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  if (code != kDone) return code;
  return complain("cannot write the output: " + cause_text(first_cause), kFailed);
}

}  // namespace tw::cli
