// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "monitor/board/board.h"

/// Tables of a board as comma-separated values (base/text/csv.h), each with a header whose names end in
/// units. Times are seconds since 1970. A field is empty where nothing is known; lists are joined by spaces.
namespace tw::monitor {

std::string rounds_csv(const Board& board);
std::string peers_csv(const Board& board);
std::string interruptions_csv(const Board& board);
std::string links_csv(const Board& board);
std::string evaluations_csv(const Board& board);

}  // namespace tw::monitor
