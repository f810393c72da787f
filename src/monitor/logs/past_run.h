// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace tw::monitor {

/// An event log (events-*.jsonl) in this folder that shows that this run had begun: after a start with its
/// digest, rounds were committed. Nothing when there is none, or when one shows that the run came to its end.
/// Reads all logs of the folder.
std::optional<std::string> log_of_unfinished_run(const std::string& folder, const std::string& run);

}  // namespace tw::monitor
