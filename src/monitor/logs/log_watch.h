// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// Messages about an event log that cannot be written: at once, then once a minute, and when it is written
/// again.
class LogWatch {
 public:
  /// The line to show now, if there is one. trouble: of the log.
  std::optional<std::string> line(Instant now, const std::optional<LogTrouble>& trouble);

 private:
  std::uint64_t missing_ = 0;  ///< missing events at the last message
  std::optional<Instant> told_at_;
};

}  // namespace tw::monitor
