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

/// "2@10:5": peer 2 stands still for 5 s from the middle of round 10 on; "2@10": for 10 s.
struct Stop {
  static constexpr Duration kUsual = std::chrono::seconds(10);

  std::optional<PeerId> victim;  ///< nobody: the leader
  Round round = 0;
  Duration lasts = kUsual;

  bool operator==(const Stop&) const = default;
};

Result<Stop> parse_stop(const std::string& text);
std::string to_string(const Stop& stop);

/// Decides from the events of the peers when one of them is killed or stopped, and when another one starts. A
/// step machine.
class Script {
 public:
  Script() = default;

  Script(std::vector<Kill> kills, std::vector<Round> joins, std::vector<Stop> stops = {})
      : kills_(std::move(kills)), stops_(std::move(stops)), joins_(std::move(joins)) {}

  void note(const monitor::LogEntry& entry);

  /// The process of this peer has ended.
  void note_end(PeerId peer) { begun_.erase(peer); }

  struct Due {
    std::vector<std::pair<PeerId, Round>> kills;  ///< whom, and in which round
    std::vector<Round> joins;
    std::vector<Stop> stops;  ///< with the victim, and the round that it is in
  };

  /// What is due now; each once. A kill or stop falls half a usual accumulation after its victim began the
  /// round.
  Due step(Instant now);

  bool is_over() const { return kills_.empty() && stops_.empty() && joins_.empty(); }

  /// The options that have not come true, as the user wrote them.
  std::vector<std::string> pending() const;

  /// The leader, as far as the events show.
  std::optional<PeerId> leader() const { return leader_; }

  /// The latest round that any peer began.
  Round round() const { return round_; }

 private:
  struct Begun {
    Round round = 0;
    Instant at;
  };

  /// The peer whose turn is now, and its round.
  std::optional<std::pair<PeerId, Round>> due(const std::optional<PeerId>& named, Round round,
                                              Instant now) const;
  Duration half_accumulation() const;

  std::vector<Kill> kills_;
  std::vector<Stop> stops_;
  std::vector<Round> joins_;
  std::map<PeerId, Begun> begun_;
  std::optional<PeerId> leader_;
  Round leader_since_ = 0;
  Round round_ = 0;
  std::vector<double> calc_s_;  ///< of all calls so far
};

}  // namespace tw::launch
