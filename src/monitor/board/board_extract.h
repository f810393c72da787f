// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "monitor/board/board.h"

namespace tw::monitor {

/// What is sent once a second: of more rounds and evaluations than `most` those of the last eighth, and of
/// the older ones every second, fourth, eighth ... by number, so that the same ones stay from one extract to
/// the next; the newest `most` interruptions. All else is whole.
Board extract_of(Board board, std::size_t most = 400);

}  // namespace tw::monitor
