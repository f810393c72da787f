// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/plan/run_prices.h"
#include "monitor/logs/log_source.h"
#include "plan/advise/replan.h"

namespace tw::cli {

/// Progress of a run, from the event logs of its peers. If a run has ended, its peers at the end count.
/// prices: of peers whose events tell none. Errors: of LogSource.
Result<plan::RunProgress> progress_of(const monitor::LogSource& logs, std::int64_t now_unix_s,
                                      const PeerPrices& prices = {});

/// The same for the newest run in a folder, or for one log, with the prices that `tw report` finds there.
Result<plan::RunProgress> progress_in(const std::string& path, std::int64_t now_unix_s);

}  // namespace tw::cli
