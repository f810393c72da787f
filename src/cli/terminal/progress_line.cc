// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/text/columns.h"
#include "base/text/duration.h"
#include "base/text/printable.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/terminal.h"

namespace tw::cli {
namespace {

constexpr Duration kFrom = std::chrono::seconds(1);  ///< no progress line before this
constexpr Duration kBetweenPaints = std::chrono::milliseconds(200);
constexpr Duration kBetweenLines = std::chrono::seconds(30);

Duration steady_time() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

std::string with_time_left(const std::string& words, double share, Duration elapsed) {
  if (!(share > 0 && share < 1)) return words;
  return words + fmt::format(", about {} to go", duration_text(to_seconds(elapsed) * (1 - share) / share));
}

bool is_due(bool on_terminal, Duration elapsed, Duration shown) {
  if (!on_terminal) return elapsed >= shown + kBetweenLines;
  return elapsed >= kFrom && (shown == Duration{} || elapsed >= shown + kBetweenPaints);
}

ProgressLine::ProgressLine() : on_terminal_(::isatty(STDERR_FILENO) == 1), begin_(steady_time()) {}

ProgressLine::~ProgressLine() { clear(); }

Duration ProgressLine::elapsed() const { return steady_time() - begin_; }

void ProgressLine::show(const std::string& words, double share) {
  const Duration now = elapsed();
  if (!is_due(on_terminal_, now, shown_at_)) return;
  shown_ = true;
  shown_at_ = now;
  const std::string line = printable_line(with_time_left(words, share, now));
  if (!on_terminal_) return show_aside(line);
  // A line that wraps would not be replaced as a whole.
  show_raw(fmt::format("\r{}\x1b[K", cut_to(line, screen_size().width - 1)));
}

void ProgressLine::clear() {
  if (shown_ && on_terminal_) show_raw("\r\x1b[K");
  shown_ = false;
}

}  // namespace tw::cli
