// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/seen.h"

namespace tw::monitor {

std::uint64_t Seen::count(std::string_view name) const {
  const double count = number_in(event(), name).value_or(0);
  return count >= 0 && count < 0x1p53 ? static_cast<std::uint64_t>(count) : 0;
}

double WallClocks::seconds(const LogEntry& entry) {
  const std::int64_t since_start = entry.event.at.time_since_epoch().count();
  const std::int64_t offset = entry.unix_nanos - since_start;
  const auto [known, is_new] = offset_nanos_.try_emplace(entry.writer, offset);
  if (entry.event.phase == world::Phase::start) known->second = offset;
  return static_cast<double>(known->second + since_start) * 1e-9;
}

}  // namespace tw::monitor
