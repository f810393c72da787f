// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/fold/journal.h"
#include "monitor/logs/held_history.h"
#include "monitor/logs/log_follower.h"

namespace tw::monitor {

/// The board of the newest run in a folder of event logs, while they grow and new ones come. Where they show
/// two histories, it is that of a report (HeldHistory). Calls block while they read new lines, then all.
class FollowedLogs {
 public:
  /// Facts about the peers besides their logs; requested again when there are more peers, or another run.
  using Facts = std::function<JournalOptions(const std::vector<PeerId>& peers)>;

  /// The folder, or its subfolder "logs" if only that one has logs; or a single log. Error: there is no such
  /// folder.
  static Result<FollowedLogs> open(const std::string& folder, Facts facts);

  /// Takes lines written since. Errors: a folder that cannot be read, a broken line (path:line and why).
  Status poll();

  Board board(double now_s) const { return journal_.board(now_s); }

  /// Logs that are followed.
  std::size_t logs() const { return follower_.logs(); }

  /// A sentence that names the logs of older runs; empty: there are none.
  std::string left_out() const { return follower_.left_out(); }

 private:
  FollowedLogs(const std::string& folder, Facts facts)
      : folder_(folder), facts_(std::move(facts)), follower_(folder) {}

  void begin();
  Status take_new();
  Status take_whole();
  bool may_turn(const LogEntry& entry) const;

  std::string folder_;
  Facts facts_;
  LogFollower follower_;
  std::string run_;
  std::vector<PeerId> peers_;
  JournalOptions options_;  ///< of the journal
  Journal journal_;
  std::optional<HeldHistory> history_;  ///< of all entries, once they had two
  std::uint64_t forks_ = 0;             ///< of the rounds of the journal, as far as the history knows them
  bool is_up_to_date_ = true;           ///< the journal, with what the follower has given
};

}  // namespace tw::monitor
