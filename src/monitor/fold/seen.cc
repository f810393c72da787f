// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/seen.h"

#include <algorithm>

namespace tw::monitor {

std::optional<double> only_averaged_since(const Seen& seen, const event::Commit& commit) {
  const auto comm_s = event::finite(commit.comm_s);
  if (!comm_s) return std::nullopt;
  return seen.at_s - std::max(0.0, *comm_s - event::finite(commit.hidden_s).value_or(0));
}

double WallClocks::seconds(const LogEntry& entry) {
  const std::int64_t since_start = entry.event.at.time_since_epoch().count();
  const std::int64_t offset = entry.unix_nanos - since_start;
  const auto [known, is_new] = offset_nanos_.try_emplace(entry.writer, offset);
  if (entry.event.as<event::Start>()) known->second = offset;
  return static_cast<double>(known->second + since_start) * 1e-9;
}

}  // namespace tw::monitor
