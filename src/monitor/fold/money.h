// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "monitor/board/board.h"
#include "wire/status.h"

namespace tw::monitor {

/// What a run has cost and will cost, from a board that has everything else: machines by price and hours,
/// traffic by the tariffs of its links. gone: of peers that the board does not know, as others told of them.
///
/// The forecast goes from now on by what the machines that run cost an hour and the traffic of now, for as
/// many rounds as are left: each as long as the median of the last ones takes (likely), as the tenth
/// shortest of a hundred (low) and the tenth longest (high).
Money money_of(const Board& board, const wire::GoneWord& gone, std::optional<double> budget_usd);

}  // namespace tw::monitor
