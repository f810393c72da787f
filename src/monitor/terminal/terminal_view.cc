// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/terminal_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "monitor/terminal/terminal_parts.h"

namespace tw::monitor {

namespace {

/// Tables below that of the peers: none gets more lines than kMost while others want some.
constexpr std::size_t kLeast = 3, kMost = 9;
/// With fewer lines there is room only for the peers.
constexpr std::size_t kLeastPeers = 13;

bool is_before(const BoardPeer& a, const BoardPeer& b, PeerOrder order) {
  switch (order) {
    case PeerOrder::state:
      return a.state > b.state;
    case PeerOrder::speed:
      return a.samples_per_s > b.samples_per_s;
    case PeerOrder::usd:
      return a.usd_per_h.value_or(-1) > b.usd_per_h.value_or(-1);
    default:
      return a.peer < b.peer;
  }
}

std::vector<const BoardPeer*> ordered(const Board& board, PeerOrder order) {
  std::vector<const BoardPeer*> peers;
  for (const BoardPeer& peer : board.peers) peers.push_back(&peer);
  std::stable_sort(peers.begin(), peers.end(),
                   [order](const BoardPeer* a, const BoardPeer* b) { return is_before(*a, *b, order); });
  return peers;
}

/// Lines for the head, the peers and the tables below.
struct Shares {
  std::size_t head = 0, peers = 0;
  std::array<std::size_t, 3> tables{};
};

/// Titles count as lines; a table without rows has no title either.
Shares share_out(std::size_t height, std::size_t head, std::size_t peers,
                 const std::array<std::size_t, 3>& wanted) {
  Shares shares{.head = std::min(head, height)};
  std::size_t rest = height - shares.head;
  const std::size_t for_peers = std::min(peers, kLeastPeers);
  rest -= std::min(rest, for_peers);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t least = std::min(wanted[i], kLeast);
    if (least > rest) continue;
    shares.tables[i] = least;
    rest -= least;
  }
  const std::size_t more = std::min(rest, peers - for_peers);
  shares.peers = std::min(height - shares.head, for_peers) + more;
  rest -= more;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (shares.tables[i] == 0) continue;
    const std::size_t added = std::min(rest, std::min(wanted[i], kMost) - shares.tables[i]);
    shares.tables[i] += added;
    rest -= added;
  }
  return shares;
}

std::size_t with_title(std::size_t rows) { return rows == 0 ? 0 : rows + 1; }

class Screen {
 public:
  Screen(const Board& board, const TerminalView& view)
      : board_(board), view_(view), head_(head_lines(board, view.width)) {
    for (TerminalLine& wait : wait_lines(board)) head_.push_back(std::move(wait));
    for (TerminalLine& delay : delay_lines(board)) head_.push_back(std::move(delay));
    const std::size_t peers = board.peers.empty() ? 1 : with_title(board.peers.size());
    shares_ = share_out(view.height, head_.size(), peers,
                        {with_title(board.interruptions.size()), with_title(board.rounds.size()),
                         with_title(links_shown(board))});
  }

  std::size_t peer_rows() const {
    const std::size_t rows = shares_.peers == 0 ? 0 : shares_.peers - 1;
    return rows >= board_.peers.size() ? board_.peers.size() : rows == 0 ? 0 : rows - 1;
  }

  std::vector<std::string> text() {
    head_.resize(shares_.head);
    add(std::move(head_));
    add_peers();
    add(interruption_lines(board_, shares_.tables[0]));
    add(round_lines(board_, shares_.tables[1]));
    add(link_lines(board_, shares_.tables[2]));
    return std::move(text_);
  }

 private:
  void add(std::vector<TerminalLine> more) {
    for (const TerminalLine& line : more) text_.push_back(line.text(view_.width, view_.colour));
  }

  void add_peers() {
    if (shares_.peers == 0) return;
    if (board_.peers.empty()) {
      TerminalLine none;
      none.add("no peer has told of itself yet", Paint::dim);
      text_.push_back(none.text(view_.width, view_.colour));
      return;
    }
    std::vector<const BoardPeer*> peers = ordered(board_, view_.order);
    const std::size_t rows = peer_rows();
    const std::size_t first = std::min(view_.first_peer, peers.size() - rows);
    const auto begin = peers.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(rows);
    add(peer_lines(board_, {begin, end}, view_.width));
    if (rows == peers.size() || shares_.peers < 2) return;
    peers.erase(begin, end);
    const std::string who =
        fmt::format("{} more {}: {}", peers.size(), peers.size() == 1 ? "peer" : "peers", states_text(peers));
    text_.push_back(TerminalLine().add(who, Paint::dim).text(view_.width, view_.colour));
  }

  const Board& board_;
  const TerminalView& view_;
  std::vector<TerminalLine> head_;
  Shares shares_;
  std::vector<std::string> text_;
};

}  // namespace

std::string_view name_of(PeerOrder order) {
  constexpr std::array<std::string_view, 4> kNames = {"id", "state", "speed", "usd"};
  return kNames.at(static_cast<std::size_t>(order));
}

std::vector<std::string> lines(const Board& board, const TerminalView& view) {
  return Screen(board, view).text();
}

std::size_t peers_shown(const Board& board, const TerminalView& view) {
  return Screen(board, view).peer_rows();
}

}  // namespace tw::monitor
