// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"

namespace tw::monitor {

struct UnfinishedRun {
  std::string log;  ///< path of one that shows it
  Round rounds = 0;
};

/// What the event logs (events-*.jsonl) in this folder show of a run that had begun: after a start with its
/// digest, rounds were committed. Nothing if there is none, or if a log shows that the run is complete. Reads
/// all logs of the folder.
std::optional<UnfinishedRun> unfinished_run(const std::string& folder, const std::string& run);

}  // namespace tw::monitor
