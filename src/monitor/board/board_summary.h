// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "monitor/board/board.h"
#include "monitor/report/report.h"

namespace tw::monitor {

/// The summary of a run, as far as a board knows it. Fields that only logs know (detection time of a loss,
/// bytes of a hand-over) are empty.
Summary summary_of(const Board& board);

}  // namespace tw::monitor
