// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_watch.h"

#include <fmt/format.h>

#include <utility>

namespace tw::monitor {

std::optional<std::string> LogWatch::line(const std::optional<LogTrouble>& trouble) {
  if (!trouble) {
    if (!std::exchange(told_, false)) return std::nullopt;
    return fmt::format("the event log is written again; {} events are missing in it", missing_);
  }
  missing_ = trouble->missing;
  if (std::exchange(told_, true)) return std::nullopt;
  return fmt::format("{}; events are missing in it, training goes on", trouble->message);
}

}  // namespace tw::monitor
