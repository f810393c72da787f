// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "market/lifetimes.h"
#include "monitor/logs/event_log_json.h"

namespace tw::cli {

/// How long machines lived, from the event logs of one run in any order: from a peer's start (or when others
/// saw it join) to when others lost it. A machine that left or stopped by itself, or was there at the last
/// entry, is no loss. A crash counts as a loss, because no log can distinguish it from a preemption.
std::vector<market::Lived> lives_of(std::vector<monitor::LogEntry> entries);

/// The same for the folder of a run (--out of tw run).
Result<std::vector<market::Lived>> lives_in(const std::string& folder);

}  // namespace tw::cli
