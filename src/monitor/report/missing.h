// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// Events of a peer that stand in none of the logs, which a report cannot count.
struct MissingEvents {
  PeerId peer;
  std::optional<std::uint64_t> events;  ///< nothing: nobody can tell how many
  std::int64_t from_unix_nanos = 0;
  std::optional<std::int64_t> to_unix_nanos{};  ///< nothing: to the end of the run
  std::string why;

  bool operator==(const MissingEvents&) const = default;
};

/// What one log says of its own gaps: lines that could not be written, and files that are not there (removed
/// when newer ones began, or not copied).
std::vector<MissingEvents> missing_events(const std::vector<LogEntry>& log);

/// MissingEvents::why of a peer that has no log at all.
inline constexpr std::string_view kNoLog = "it contributed, and none of these logs is its own";

/// The contributors of committed rounds that have no log, from the first of these rounds to the last.
std::vector<MissingEvents> peers_without_log(const std::vector<std::vector<LogEntry>>& logs);

/// "peer 3: 214 events between 2026-01-31T12:00:00.000Z and 2026-01-31T12:01:10.000Z (No space left on
/// device)"
std::string to_string(const MissingEvents& missing);

}  // namespace tw::monitor
