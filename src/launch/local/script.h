// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "monitor/logs/event_log_json.h"

namespace tw::launch {

/// "2@10": peer 2 in round 10; "leader@10": the leader of round 10.
struct Kill {
  std::optional<PeerId> victim;  ///< nobody: the leader
  Round round = 0;

  bool operator==(const Kill&) const = default;
};

Result<Kill> parse_kill(const std::string& text);
std::string to_string(const Kill& kill);

/// Decides from the events of the peers when `tw local` kills one and when it starts another. A step machine.
class Script {
 public:
  Script(std::vector<Kill> kills, std::vector<Round> joins)
      : kills_(std::move(kills)), joins_(std::move(joins)) {}

  void note(const monitor::LogEntry& entry);

  /// The process of this peer has ended.
  void note_end(PeerId peer) { begun_.erase(peer); }

  struct Due {
    std::vector<std::pair<PeerId, Round>> kills;  ///< whom, and in which round
    std::vector<Round> joins;
  };

  /// What is due now; each once. A kill falls half a usual accumulation after its victim began the round.
  Due step(Instant now);

  /// The options that have not come true, as the user wrote them.
  std::vector<std::string> pending() const;

  /// The leader, as far as the events tell.
  std::optional<PeerId> leader() const { return leader_; }

 private:
  struct Begun {
    Round round = 0;
    Instant at;
  };

  std::optional<PeerId> victim_of(const Kill& kill) const;
  Duration half_accumulation() const;

  std::vector<Kill> kills_;
  std::vector<Round> joins_;
  std::map<PeerId, Begun> begun_;
  std::optional<PeerId> leader_;
  Round leader_since_ = 0;
  Round round_ = 0;             ///< latest round that any peer began
  std::vector<double> calc_s_;  ///< of all calls so far
};

}  // namespace tw::launch
