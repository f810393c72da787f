// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_extract.h"

#include <algorithm>
#include <bit>

namespace tw::monitor {
namespace {

/// The things have a round each, and rise by it.
template <class T>
void thin_out(std::vector<T>& things, std::size_t most) {
  if (things.size() <= most || most == 0) return;
  const std::size_t newest = std::max<std::size_t>(1, most / 8);
  const std::size_t old = things.size() - newest;
  const std::uint64_t step = std::bit_ceil((old + most - newest - 1) / (most - newest));
  const auto end_of_old = things.end() - static_cast<std::ptrdiff_t>(newest);
  const auto kept =
      std::remove_if(things.begin(), end_of_old, [step](const T& thing) { return thing.round % step != 0; });
  things.erase(kept, end_of_old);
}

}  // namespace

Board extract_of(Board board, std::size_t most) {
  thin_out(board.rounds, most);
  if (board.interruptions.size() > most)
    board.interruptions.erase(board.interruptions.begin(),
                              board.interruptions.end() - static_cast<std::ptrdiff_t>(most));
  return board;
}

}  // namespace tw::monitor
