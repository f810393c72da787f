// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_watch.h"

#include <fmt/format.h>

namespace tw::monitor {
namespace {

constexpr Duration kBetweenLogComplaints = std::chrono::minutes(1);

}  // namespace

std::optional<std::string> LogWatch::line(Instant now, const std::optional<LogTrouble>& trouble) {
  if (!trouble) {
    if (!told_at_) return std::nullopt;
    told_at_.reset();
    return fmt::format("the event log is written again; {} events are missing in it", missing_);
  }
  missing_ = trouble->missing;
  if (told_at_ && now - *told_at_ < kBetweenLogComplaints) return std::nullopt;
  told_at_ = now;
  return fmt::format("{}; {} events are missing so far, training goes on", trouble->message, missing_);
}

}  // namespace tw::monitor
