// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "cli/terminal/terminal.h"

namespace tw::cli {
namespace {

// Alternate screen, no cursor, no wrapping of long lines; and back. Terminals that do not know them do
// nothing.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr const char* kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
// Synchronized update: what is between the two appears at once.
constexpr const char* kBegin = "\x1b[?2026h";
constexpr const char* kEnd = "\x1b[?2026l";
constexpr int kFaults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

termios before{};  ///< of the terminal, as it was

void make_raw() {
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

// Safe in a signal handler.
void give_terminal_back() {
  for (std::size_t at = 0; at < std::strlen(kLeave);) {
    const ssize_t written = ::write(STDOUT_FILENO, kLeave + at, std::strlen(kLeave) - at);
    if (written <= 0) break;
    at += static_cast<std::size_t>(written);
  }
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

extern "C" void on_fault(int signal) {
  give_terminal_back();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void catch_faults(void (*handler)(int)) {
  for (const int signal : kFaults) std::signal(signal, handler);
}

}  // namespace

ScreenSize screen_size() {
  winsize size{};
  const bool told = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return told ? ScreenSize{size.ws_col, size.ws_row} : ScreenSize{};
}

std::string repainting(const std::vector<std::string>& shown, const std::vector<std::string>& wanted) {
  std::string text;
  if (shown.empty()) text += "\x1b[2J";
  for (std::size_t row = 0; row < std::max(shown.size(), wanted.size()); ++row) {
    const std::string_view is = row < shown.size() ? shown[row] : std::string_view();
    const std::string_view becomes = row < wanted.size() ? wanted[row] : std::string_view();
    if (is != becomes) text += fmt::format("\x1b[{};1H\x1b[2K{}", row + 1, becomes);
  }
  return text.empty() ? text : kBegin + text + kEnd;
}

Result<Screen> Screen::take() {
  const char* const kind = std::getenv("TERM");
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    return Error{"stdin and stdout must be a terminal; --once prints once, anywhere"};
  if (kind == nullptr || std::string_view(kind) == "dumb" || ::tcgetattr(STDIN_FILENO, &before) != 0)
    return Error{fmt::format("TERM={}: expected a terminal whose cursor moves; --once prints once, anywhere",
                             kind == nullptr ? "" : kind)};
  catch_faults(on_fault);
  make_raw();
  (void)show_frame(kEnter);
  return Screen();
}

Screen::Screen(Screen&& other) noexcept
    : shown_(std::move(other.shown_)), owned_(std::exchange(other.owned_, false)) {}

Screen::~Screen() {
  if (!owned_) return;
  give_terminal_back();
  catch_faults(SIG_DFL);
}

void Screen::show(std::vector<std::string> lines) {
  if (!show_frame(repainting(shown_, lines))) return forget();
  shown_ = std::move(lines);
}

void Screen::forget() { shown_.clear(); }

void Screen::stop_here() {
  give_terminal_back();
  std::raise(SIGSTOP);
  make_raw();
  (void)show_frame(kEnter);
  forget();
}

}  // namespace tw::cli
