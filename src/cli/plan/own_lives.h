// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "market/lifetimes.h"
#include "monitor/logs/event_log_json.h"

namespace tw::cli {

enum class LifeEnd {
  none,   ///< it was there at the last entry
  left,   ///< by itself, or by its owner's wish
  taken,  ///< lost, or gone after a notice of its cloud
};

/// A machine of a run. Times are unix times.
struct Life {
  PeerId peer;
  double began_s = 0, ended_s = 0;
  LifeEnd end{};

  double hours() const { return (ended_s - began_s) / 3600; }
};

/// Lives of machines from the event logs of one run in any order: from a peer's start, or when others saw it
/// join, to when others lost it. One that nobody saw come was there at the first entry. A crash counts as
/// taken, because no log can distinguish it from a preemption.
class LivesInLogs {
 public:
  /// The phases whose entries have to be complete.
  static constexpr monitor::Phases kWanted =
      monitor::phases({world::Phase::start, world::Phase::join, world::Phase::notice, world::Phase::leave,
                       world::Phase::lost, world::Phase::stop});

  void take(const monitor::LogEntry& entry);

  /// When the first entry was written; nothing: there is none.
  const std::optional<std::int64_t>& begun_unix_nanos() const { return begun_unix_nanos_; }

  std::vector<Life> lives() &&;

 private:
  std::optional<std::int64_t> begun_unix_nanos_;
  std::int64_t ended_unix_nanos_ = 0;
  std::vector<monitor::LogEntry> entries_;  ///< the wanted ones: few of a log
};

/// How long the machines of a run lived. folder: --out of tw run.
Result<std::vector<market::Lived>> lives_in(const std::string& folder);

}  // namespace tw::cli
