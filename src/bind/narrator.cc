// SPDX-License-Identifier: Apache-2.0
#include "bind/narrator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/text/printable.h"

namespace tw::bind {
namespace {

/// A program that never calls the engine hears of the newest ones.
constexpr std::size_t kMostLines = 256;

}  // namespace

Narrator Narrator::to_stderr(peer::Progress progress, std::optional<double> usd_per_h) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const bool on = progress == peer::Progress::line || (progress == peer::Progress::automatic && terminal);
  return {on, terminal, usd_per_h};
}

void Narrator::take(const world::Event& event) {
  if (!on_ || event.phase == world::Phase::warn) return;  // the program hears warnings itself
  if (!began_) began_ = event.at;
  std::optional<std::string> line = progress_.line_for(event);
  if (!line) return;
  const bool round = event.phase == world::Phase::commit;
  if (round && usd_per_h_)
    *line += fmt::format("  ${:.2f}", *usd_per_h_ * to_seconds(event.at - *began_) / 3600);
  add({printable_line(*line), round});
}

void Narrator::say(std::string line) {
  if (on_) add({printable_line(line), false});
}

void Narrator::add(Line line) {
  const bool replaces = terminal_ && line.round && !lines_.empty() && lines_.back().round;
  if (replaces) lines_.pop_back();
  if (lines_.size() >= kMostLines) lines_.erase(lines_.begin());
  lines_.push_back(std::move(line));
}

std::string Narrator::take_text(bool last) {
  std::string text;
  for (const Line& line : std::exchange(lines_, {})) {
    if (terminal_ && line.round) {
      text += fmt::format("\r{:<{}}", line.text, width_);
      width_ = line.text.size();
      continue;
    }
    if (width_ > 0) text += '\n';
    width_ = 0;
    text += line.text + '\n';
  }
  if (last && width_ > 0) text += '\n';
  return text;
}

}  // namespace tw::bind
