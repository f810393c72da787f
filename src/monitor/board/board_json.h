// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "monitor/board/board.h"
#include "monitor/fold/what_if.h"

namespace tw::monitor {

/// One line. Keys are the names of the members, in their order; an empty optional is null, and so is a number
/// that is not finite; states and kinds by name_of. `money` has the computed keys "usd" and
/// "is_priced", too.
std::string to_json(const Board& board);
std::string to_json(const Delay& delay);
std::string to_json(const std::optional<WhatIf>& answers);

/// The board as JSON, and its what_if() under the key "answers": what a frozen page of a run takes.
std::string frozen_json(const Board& board);

/// The inverse of to_json. Every key must be present, and no other; a number that is null is
/// 0: not known. The error names the first place that is wrong: "board.peers[2].state: ...".
Result<Board> board_from_json(const std::string& text);

}  // namespace tw::monitor
