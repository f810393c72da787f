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

Narrator Narrator::of(const peer::Options& peer) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const bool on =
      peer.progress == peer::Progress::line || (peer.progress == peer::Progress::automatic && terminal);
  return Narrator(
      {on, terminal, peer.session.run.rounds, peer.usd_per_h, peer.progress == peer::Progress::off});
}

void Narrator::take(const world::Event& event) {
  if (!options_.on || event.phase() == world::Phase::warn) return;  // the program hears warnings itself
  if (!began_) began_ = event.at;
  std::optional<std::string> line = progress_.line_for(event);
  if (!line) return;
  const bool round = event.phase() == world::Phase::commit;
  if (round && options_.usd_per_h)
    *line += fmt::format("  ${:.2f}", *options_.usd_per_h * to_seconds(event.at - *began_) / 3600);
  add({printable_line(*line), round});
}

void Narrator::say(std::string line) {
  if (options_.on) add({printable_line(line), false});
}

void Narrator::insist(std::string line) {
  if (!options_.silent) add({printable_line(line), false});
}

void Narrator::announce(std::string line) { add({printable_line(line), false}); }

void Narrator::add(Line line) {
  const bool replaces = options_.terminal && line.round && !lines_.empty() && lines_.back().round;
  if (replaces) lines_.pop_back();
  if (lines_.size() >= kMostLines) lines_.erase(lines_.begin());
  lines_.push_back(std::move(line));
}

std::string Narrator::take_text(bool last) {
  std::string text;
  for (const Line& line : std::exchange(lines_, {})) {
    if (options_.terminal && line.round) {
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
