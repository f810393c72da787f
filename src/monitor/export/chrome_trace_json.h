// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "monitor/board/board.h"

namespace tw::monitor {

/// The board's lanes in the Trace Event Format, which Perfetto, speedscope and chrome://tracing open: a
/// process for each peer, a complete event (X) for each of its spans, instants (i) for interruptions. In a
/// committed round arrows (s, f) lead from the end of the slowest computation to the end of averaging of the
/// other contributors. ts and dur are microseconds, and 0 is the beginning of the first span. pid is the id
/// of the peer; if an id is above 2^31 - 1, which viewers do not accept, pids count the peers instead.
std::string chrome_trace(const Board& board);

}  // namespace tw::monitor
