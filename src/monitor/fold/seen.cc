// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/seen.h"

namespace tw::monitor {

double WallClocks::seconds(const LogEntry& entry) {
  const std::int64_t since_start = entry.event.at.time_since_epoch().count();
  const std::int64_t offset = entry.unix_nanos - since_start;
  const auto [known, is_new] = offset_nanos_.try_emplace(entry.writer, offset);
  if (entry.event.as<event::Start>()) known->second = offset;
  return static_cast<double>(known->second + since_start) * 1e-9;
}

}  // namespace tw::monitor
