// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "monitor/board/board.h"
#include "monitor/report/report.h"

namespace tw::monitor {

/// What a board knows of the summary that the event logs give in the end. Where only the logs know it (how
/// long a loss took to be seen, what a hand-over carried), the field is empty.
Summary summary_of(const Board& board);

}  // namespace tw::monitor
