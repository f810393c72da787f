// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// Messages about an event log that cannot be written: at once, and when it is written again.
class LogWatch {
 public:
  /// The line to show now, if there is one. trouble: of the log.
  std::optional<std::string> line(const std::optional<LogTrouble>& trouble);

 private:
  std::uint64_t missing_ = 0;  ///< events, since it cannot be written
  bool told_ = false;
};

}  // namespace tw::monitor
