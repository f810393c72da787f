// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace tw::monitor {

/// An event log (events-*.jsonl) in this folder that shows that this run had begun: after a start with its
/// digest, rounds were committed. Nothing if there is none, or if a log shows that the run is complete. Reads
/// all logs of the folder.
std::optional<std::string> log_of_unfinished_run(const std::string& folder, const std::string& run);

}  // namespace tw::monitor
