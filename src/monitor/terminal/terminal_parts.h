// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "monitor/board/board.h"
#include "monitor/terminal/terminal_line.h"

/// The parts of a terminal's view of a board (terminal_view.h), each as lines that may still be too wide.
namespace tw::monitor {

/// Run, progress, speed, state and money: as many lines as their words need at this width.
std::vector<TerminalLine> head_lines(const Board& board, std::size_t width);

/// The longest waits for other peers, three at most.
std::vector<TerminalLine> wait_lines(const Board& board);

/// What costs the rounds time now and since when, with its remedy: three at most.
std::vector<TerminalLine> delay_lines(const Board& board);

/// A title and a line for each; more columns where there is width for them.
std::vector<TerminalLine> peer_lines(const Board& board, const std::vector<const BoardPeer*>& peers,
                                     std::size_t width);

/// "10 computing, 2 lost", in the order of PeerState.
std::string states_text(const std::vector<const BoardPeer*>& peers);

/// The newest, the fastest and the newest; `most` lines with the title, which counts what is left out. No
/// line where there is nothing to show or most is 0.
std::vector<TerminalLine> round_lines(const Board& board, std::size_t most);
std::vector<TerminalLine> link_lines(const Board& board, std::size_t most);

/// Links worth a table: none if all of them are within one site.
std::size_t links_shown(const Board& board);
std::vector<TerminalLine> interruption_lines(const Board& board, std::size_t most);

}  // namespace tw::monitor
