// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/range_set.h"
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
class LogGaps {
 public:
  /// The next entry of the log.
  void take(const LogEntry& entry);

  const std::vector<MissingEvents>& found() const { return found_; }

 private:
  std::uint64_t seen_ = 0;
  std::int64_t last_unix_nanos_ = 0;
  std::vector<MissingEvents> found_;
};

/// MissingEvents::why of a peer that has no log at all.
inline constexpr std::string_view kNoLog = "it contributed, and none of these logs is its own";

/// What the records in all logs say of contributors whose own logs do not: peers without a log, and rounds
/// that a log passes over, because its first lines or some between are gone. A peer that begins anew, or
/// takes a state from others, passes over rounds, too: these are not missing.
class UnloggedRounds {
 public:
  /// The next entry of all logs, in the order of time. dropped: of HeldHistory.
  void take(const LogEntry& entry, bool dropped);

  /// By peer.
  std::vector<MissingEvents> found() const;

 private:
  struct Peer {
    RangeSet contributed;  ///< rounds, by the records
    RangeSet passed;       ///< that its log passes over
    Round last = 0;        ///< that it committed
    bool goes_on = true;   ///< from that round, without a new beginning
    bool has_log = false;
    std::int64_t from_unix_nanos = 0, to_unix_nanos = 0;  ///< of the records
  };

  void take_own(const LogEntry& entry, bool dropped);
  MissingEvents no_log(PeerId id, const Peer& peer) const;
  MissingEvents no_commits(PeerId id, const RangeSet& rounds) const;

  std::map<PeerId, Peer> peers_;
  std::map<Round, std::int64_t> committed_unix_nanos_;
};

/// "peer 3: 214 events between 2026-01-31T12:00:00.000Z and 2026-01-31T12:01:10.000Z (No space left on
/// device)"
std::string to_string(const MissingEvents& missing);

}  // namespace tw::monitor
