// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "monitor/board/board.h"
#include "wire/status.h"

namespace tw::monitor {

/// Cost of a run so far and forecast, from a board that has everything else: machines by price and hours,
/// traffic by the tariffs of its links. gone: cost of peers that the board does not know, as reported by
/// others.
///
/// The forecast adds the present hourly cost of machines and traffic for the remaining rounds. Each takes the
/// median of the last ones (likely), the tenth shortest of a hundred (low) or the tenth longest (high).
Money money_of(const Board& board, const wire::GonePeers& gone, std::optional<double> budget_usd);

}  // namespace tw::monitor
