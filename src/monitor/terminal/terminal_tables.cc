// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/peer_name.h"
#include "base/text/columns.h"
#include "monitor/terminal/terminal_numbers.h"
#include "monitor/terminal/terminal_parts.h"

namespace tw::monitor {

namespace {

/// "(3 of 12)" where not all have room.
std::string count_text(std::size_t shown, std::size_t all) {
  return shown == all ? "" : fmt::format("({} of {})", shown, all);
}

std::string left_out_text(const BoardRound& round) {
  std::string text;
  for (const LeftOut& out : round.left_out)
    text += fmt::format("{}without peer {}{}", text.empty() ? "" : "; ", peer_name(out.peer),
                        out.why.empty() ? "" : ": " + out.why);
  return text;
}

TerminalLine round_row(const BoardRound& round) {
  const auto seconds = [](double s) { return fmt::format("{:.2f} s", s); };
  const auto share = [](double part) { return fmt::format("{:.0f} %", 100 * part); };
  const auto loss = [](double value) {
    return std::abs(value) < 1e-3 ? fmt::format("{:.2g}", value) : fmt::format("{:.4g}", value);
  };
  TerminalLine line;
  line.number(std::to_string(round.round), 7).number(grouped(round.samples), 10);
  line.number(known(round.calc_s, seconds), 8).number(known(round.comm_s, seconds), 9);
  line.number(known(round.bound_share, share), 5).number(std::to_string(round.contributors.size()), 5);
  line.number(known(round.loss, loss), 7);
  if (!round.committed_s) return line.add("not decided yet", Paint::dim);
  return line.add(left_out_text(round), Paint::caution);
}

Paint paint_of(Interruption::Kind kind) {
  if (kind == Interruption::Kind::lost) return Paint::alarm;
  return kind == Interruption::Kind::joined ? Paint::good : Paint::caution;
}

}  // namespace

std::vector<TerminalLine> round_lines(const Board& board, std::size_t most) {
  if (most < 2 || board.rounds.empty()) return {};
  const std::size_t shown = std::min(most - 1, board.rounds.size());
  std::vector<TerminalLine> lines(1);
  lines[0].number("ROUND", 7, Paint::title).number("SAMPLES", 10, Paint::title);
  lines[0].number("CALC", 8, Paint::title).number("AVERAGING", 9, Paint::title);
  lines[0].number("BOUND", 5, Paint::title).number("PEERS", 5, Paint::title);
  lines[0].number("LOSS", 7, Paint::title).add(count_text(shown, board.rounds.size()), Paint::dim);
  for (std::size_t i = 0; i < shown; ++i)
    lines.push_back(round_row(board.rounds[board.rounds.size() - 1 - i]));
  return lines;
}

namespace {

/// The bytes, with the requests to a store; "-" where a price of either is not known.
std::string usd_of(const BoardLink& link) {
  if (!link.usd_per_gb || (!link.store.empty() && !link.requests_usd)) return "-";
  return usd_text(link.usd + link.requests_usd.value_or(0));
}

}  // namespace

std::size_t links_shown(const Board& board) {
  const bool within =
      std::ranges::all_of(board.links, [](const BoardLink& link) { return link.from == link.to; });
  return within ? 0 : board.links.size();
}

std::vector<TerminalLine> link_lines(const Board& board, std::size_t most) {
  if (most < 2 || links_shown(board) == 0) return {};
  std::vector<const BoardLink*> links;
  std::size_t site = 4;
  for (const BoardLink& link : board.links) {
    links.push_back(&link);
    site = std::max({site, columns_of(link.from), columns_of(link.to)});
  }
  site = std::min<std::size_t>(site, 24);
  std::stable_sort(links.begin(), links.end(),
                   [](const BoardLink* a, const BoardLink* b) { return a->mbit_s > b->mbit_s; });
  const std::size_t shown = std::min(most - 1, links.size());
  std::vector<TerminalLine> lines(1);
  lines[0].cell("FROM", site, Paint::title).cell("TO", site, Paint::title);
  lines[0].number("MBIT/S", 9, Paint::title).number("OF", 9, Paint::title).number("SENT", 9, Paint::title);
  const bool any_store =
      std::any_of(links.begin(), links.end(), [](auto* link) { return !link->store.empty(); });
  if (any_store) lines[0].number("REQUESTS", 11, Paint::title);
  lines[0].number("USD", 9, Paint::title).add(count_text(shown, links.size()), Paint::dim);
  for (std::size_t i = 0; i < shown; ++i) {
    const BoardLink& link = *links[i];
    TerminalLine& line = lines.emplace_back();
    line.cell(link.from.empty() ? "-" : link.from, site).cell(link.to.empty() ? "-" : link.to, site);
    line.number(rate_text(link.mbit_s), 9).number(known(link.bound_mbit_s, rate_text), 9);
    line.number(bytes_text(static_cast<double>(link.bytes)), 9);
    if (any_store) line.number(!link.store.empty() ? grouped(link.requests) : "", 11);
    line.number(usd_of(link), 9);
  }
  return lines;
}

std::vector<TerminalLine> interruption_lines(const Board& board, std::size_t most) {
  if (most < 2 || board.interruptions.empty()) return {};
  const std::size_t all = board.interruptions.size(), shown = std::min(most - 1, all);
  std::vector<TerminalLine> lines(1);
  lines[0].cell("TIME", 8, Paint::title).cell("WHAT", 11, Paint::title).number("ROUND", 8, Paint::title);
  lines[0].add("WHO AND WHY ", Paint::title).add(count_text(shown, all), Paint::dim);
  for (std::size_t i = 0; i < shown; ++i) {
    const Interruption& event = board.interruptions[all - 1 - i];
    std::string what(name_of(event.kind));
    std::replace(what.begin(), what.end(), '_', ' ');
    TerminalLine& line = lines.emplace_back();
    line.cell(time_of_day(event.at_s), 8).cell(what, 11, paint_of(event.kind));
    line.number(std::to_string(event.round), 8).add("peer " + peer_name(event.peer));
    if (!event.detail.empty()) line.add(": " + event.detail);
  }
  return lines;
}

}  // namespace tw::monitor
