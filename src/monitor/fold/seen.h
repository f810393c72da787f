// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/ids.h"
#include "monitor/logs/event_log_json.h"

/// The parts that a journal (monitor/fold/journal.h) is made of: each makes one part of the board from the
/// events of all peers, an event at a time, in the order of time. Pure, bounded by the members of the run and
/// by Board::kMost...
namespace tw::monitor {

/// An event with its time: seconds since 1970.
struct Seen {
  const LogEntry& entry;
  double at_s = 0;

  const world::Event& event() const { return entry.event; }

  PeerId writer() const { return entry.writer; }
};

/// Since when the peer of a commit only averaged. The call may come long before: until its own microbatches
/// of the round are done, and while it works for the next one, a peer computes. Nothing: the event does not
/// say.
std::optional<double> only_averaged_since(const Seen& seen, const event::Commit& commit);

/// Wall times of events. Within a process they follow its monotonic clock, because the wall clock may be
/// changed.
class WallClocks {
 public:
  double seconds(const LogEntry& entry);

 private:
  std::map<PeerId, std::int64_t> offset_nanos_;  ///< wall time minus monotonic time, by writer
};

}  // namespace tw::monitor
