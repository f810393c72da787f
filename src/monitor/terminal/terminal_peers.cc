// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/peer_name.h"
#include "base/text/columns.h"
#include "base/text/duration.h"
#include "monitor/terminal/terminal_numbers.h"
#include "monitor/terminal/terminal_parts.h"

namespace tw::monitor {

namespace {

constexpr std::size_t kWide = 110, kVeryWide = 160;  ///< from these widths on there are more columns
constexpr double kSilent_s = 5;                      ///< statuses come once a second
constexpr std::size_t kStates = 8;

struct PeerColumns {
  std::size_t id = 4, site = 4, hardware = 8;
  bool wide = false, very_wide = false;
  bool gpus = false;  ///< some peer's is known
};

PeerColumns columns_for(const std::vector<const BoardPeer*>& peers, std::size_t width) {
  PeerColumns columns{.wide = width >= kWide, .very_wide = width >= kVeryWide};
  for (const BoardPeer* peer : peers) {
    columns.id = std::max(columns.id, peer_name(peer->peer).size());
    columns.site = std::max(columns.site, columns_of(peer->site));
    columns.hardware = std::max(columns.hardware, columns_of(peer->hardware));
    columns.gpus = columns.gpus || peer->gpu.has_value();
  }
  columns.site = std::min<std::size_t>(columns.site, columns.wide ? 28 : 18);
  columns.hardware = std::min<std::size_t>(columns.hardware, 24);
  return columns;
}

Paint paint_of(PeerState state) {
  switch (state) {
    case PeerState::computing:
    case PeerState::applying:
      return Paint::good;
    case PeerState::averaging:
    case PeerState::fetching:
      return Paint::busy;
    case PeerState::leaving:
      return Paint::caution;
    case PeerState::lost:
      return Paint::alarm;
    default:
      return Paint::dim;
  }
}

bool is_gone(const BoardPeer& peer) { return peer.state == PeerState::left || peer.state == PeerState::lost; }

std::string notice_text(const BoardNotice& notice, double now_s) {
  std::string text = notice.source + " " + notice.kind;
  if (!notice.deadline_s) return text;
  const double left = *notice.deadline_s - now_s;
  return text + (left > 0 ? " in " + duration_text(left) : ", its time is over");
}

/// The head has the reason of a wait for others (wait_lines).
std::string wait_text(const BoardWait& wait, double now_s) {
  const std::string since = duration_text(now_s - wait.since_s);
  if (wait.peers.empty()) return since + ": " + wait.text;
  if (wait.peers.size() > 1) return fmt::format("waits for {} peers, {}", wait.peers.size(), since);
  return fmt::format("waits for peer {}, {}", peer_name(wait.peers.front()), since);
}

std::string per_cent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// The time of a run that nobody goes on with may stand still: then it does not say how long ago something
/// was.
std::string gone_text(const BoardPeer& peer, const Board& board) {
  const bool goes_on = !board.is_over() && !board.dead_since_s;
  std::string when;
  if (peer.since_s > 0)
    when = goes_on ? duration_text(board.now_s - peer.since_s) + " ago" : "at " + time_of_day(peer.since_s);
  return peer.ended + (when.empty() || peer.ended.empty() ? "" : ", ") + when;
}

/// The most urgent note about a peer.
std::string note_of(const BoardPeer& peer, const Board& board) {
  const double now_s = board.now_s;
  if (is_gone(peer)) return gone_text(peer, board);
  if (peer.notice) return notice_text(*peer.notice, now_s);
  if (peer.heard_s > 0 && now_s - peer.heard_s >= kSilent_s)
    return "silent for " + duration_text(now_s - peer.heard_s);
  if (peer.wait) return wait_text(*peer.wait, now_s);
  if (!peer.ended.empty()) return peer.ended;
  if (!peer.ended.empty()) return peer.ended;
  return peer.anchor ? "anchor" : "";
}

TerminalLine title(const PeerColumns& columns) {
  TerminalLine line;
  line.number("PEER", columns.id, Paint::title).cell("SITE", columns.site, Paint::title);
  if (columns.very_wide) line.cell("HARDWARE", columns.hardware, Paint::title);
  line.cell("STATE", 9, Paint::title).number("ROUND", 6, Paint::title);
  line.number("SAMPLES/S", 9, Paint::title);
  if (columns.wide) line.number("SAMPLES", 13, Paint::title).number("SENT", 9, Paint::title);
  if (columns.very_wide) line.number("RECEIVED", 9, Paint::title).number("MEMORY", 9, Paint::title);
  if (columns.wide && columns.gpus) line.number("GPU", 5, Paint::title).number("GPU MEM", 9, Paint::title);
  return line.number("$/H", 7, Paint::title).add("NOTE", Paint::title);
}

TerminalLine row(const BoardPeer& peer, const PeerColumns& columns, const Board& board) {
  const bool gone = is_gone(peer);
  TerminalLine line;
  line.number(peer_name(peer.peer), columns.id).cell(peer.site.empty() ? "-" : peer.site, columns.site);
  if (columns.very_wide) line.cell(peer.hardware.empty() ? "-" : peer.hardware, columns.hardware);
  line.cell(name_of(peer.state), 9, paint_of(peer.state)).number(std::to_string(peer.round), 6);
  line.number(gone ? "-" : rate_text(peer.samples_per_s), 9);
  const auto bytes = [](std::uint64_t count) { return bytes_text(static_cast<double>(count)); };
  if (columns.wide) line.number(grouped(peer.samples), 13).number(bytes(peer.usage.bytes_sent), 9);
  if (columns.very_wide)
    line.number(bytes(peer.usage.bytes_received), 9).number(bytes(peer.usage.peak_memory), 9);
  if (columns.wide && columns.gpus) {
    const bool has_gpu = peer.gpu.has_value() && !gone;
    line.number(has_gpu ? known(peer.gpu->busy, per_cent) : "-", 5);
    line.number(has_gpu ? bytes(peer.gpu->memory) : "-", 9);
  }
  line.number(known(peer.usd_per_h, usd_text), 7);
  const bool urgent = peer.notice.has_value() || peer.state == PeerState::lost;
  return line.add(note_of(peer, board), urgent ? Paint::caution : Paint::plain);
}

}  // namespace

std::vector<TerminalLine> peer_lines(const Board& board, const std::vector<const BoardPeer*>& peers,
                                     std::size_t width) {
  const PeerColumns columns = columns_for(peers, width);
  std::vector<TerminalLine> lines{title(columns)};
  for (const BoardPeer* peer : peers) lines.push_back(row(*peer, columns, board));
  return lines;
}

std::string states_text(const std::vector<const BoardPeer*>& peers) {
  std::array<std::size_t, kStates> counts{};
  for (const BoardPeer* peer : peers) ++counts.at(static_cast<std::size_t>(peer->state));
  std::string text;
  for (std::size_t state = 0; state < kStates; ++state)
    if (counts[state] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[state],
                          name_of(static_cast<PeerState>(state)));
  return text;
}

}  // namespace tw::monitor
