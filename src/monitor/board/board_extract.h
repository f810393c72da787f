// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "monitor/board/board.h"

namespace tw::monitor {

/// The part of a board that is sent once a second. If there are more than `most` rounds: those
/// of the last eighth, and of the older ones every second, fourth, eighth ... by number, so that the same
/// ones stay from one extract to the next. Also the newest `most` interruptions; the rest is complete.
Board extract_of(Board board, std::size_t most = 400);

}  // namespace tw::monitor
