// SPDX-License-Identifier: Apache-2.0
#include "bind/narrator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

/// As the budget counts them, traffic included. Where nobody else's price is known they are this peer's.
std::string Narrator::dollars(Instant now, const monitor::Journal* journal) const {
  const monitor::Board board = journal != nullptr ? journal->board() : monitor::Board{};
  const auto priced = std::ranges::count_if(
      board.peers, [](const monitor::BoardPeer& peer) { return peer.usd_per_h.has_value(); });
  const auto usd = board.money.usd();
  const auto peers = std::ssize(board.peers);
  if (usd && priced == peers) return fmt::format("  ${:.2f}", *usd);
  if (usd && (priced > 1 || !options_.usd_per_h))
    return fmt::format("  ${:.2f} for {} of {} peers", *usd, priced, peers);
  if (!options_.usd_per_h) return "";
  return fmt::format("  this peer ${:.2f}", *options_.usd_per_h * to_seconds(now - *began_) / 3600);
}

void Narrator::take(const world::Event& event, const monitor::Journal* journal) {
  if (!options_.on || event.phase() == world::Phase::warn) return;  // the program hears warnings itself
  if (!began_) began_ = event.at;
  std::optional<std::string> line = progress_.line_for(event);
  if (!line) return;
  const bool round = event.phase() == world::Phase::commit;
  if (round) *line += dollars(event.at, journal);
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
