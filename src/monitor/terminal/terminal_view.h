// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/board/board.h"

namespace tw::monitor {

enum class PeerOrder { id, state, speed, usd };

std::string_view name_of(PeerOrder order);

/// How `tw top` shows a board.
struct TerminalView {
  std::size_t width = 80, height = 24;  ///< columns, lines
  bool colour = false;                  ///< escape sequences for colours; there are no others
  PeerOrder order = PeerOrder::id;
  std::size_t first_peer = 0;  ///< so many of the order are passed over, where not all have room
};

/// At most `height` lines of at most `width` columns each: the run, who waits for whom, the peers, and as far
/// as there is room the newest rounds, links and interruptions. What has no room is counted.
std::vector<std::string> lines(const Board& board, const TerminalView& view);

/// How many peers have room in this view; first_peer beyond the rest changes nothing.
std::size_t peers_shown(const Board& board, const TerminalView& view);

}  // namespace tw::monitor
