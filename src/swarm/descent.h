// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "wire/record.h"

namespace tw {

/// Which of two histories that met gives way because of where they come from, whatever each has counted: true
/// when that with the record `own` does, false when that with `other` does, nothing when descent decides
/// nothing. Both are the newest records of their histories, and neither is the other's next round.
///
/// - A lone peer's new history never goes before one that had members: a process that was started again and
///   reached nobody has made nothing that others had a part in.
/// - A history that was begun anew from a record (restarted() of swarm/quorum.h) goes before this record.
std::optional<bool> gives_way_by_descent(const Record& own, const Record& other);

}  // namespace tw
