// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "monitor/logs/event_log_json.h"

namespace tw::soak {

/// Judges the event logs of one run: one history, the same parameters on all peers, the samples of each round
/// exact. The history is what leads to the newest record. A record beside it is given up; that is allowed
/// only where a peer decided without a majority, and to what follows from that. Rounds that nobody logged,
/// because the disks of all who decided them were full, are passed over: their samples are judged together.
class HistoryJudge {
 public:
  /// Samples of a round that loses nobody.
  explicit HistoryJudge(std::uint64_t samples_of_round) : samples_of_round_(samples_of_round) {}

  /// The entries of one writer in their order.
  void see(const monitor::LogEntry& entry);

  struct Findings {
    std::vector<std::string> faults;
    std::size_t rounds = 0;            ///< of the history
    std::uint64_t samples = 0;         ///< of the history
    std::size_t without_majority = 0;  ///< rounds of the history
    std::size_t given_up = 0;          ///< records beside the history
    std::size_t unlogged = 0;          ///< rounds of the history that no log has, for disks were full
  };

  /// Findings on all that was seen, at a time when no two histories are under way.
  Findings judge() const;

 private:
  struct Written {
    Round round = 0;
    bool without_majority = false;
    std::string parent = {};  ///< digest; empty: no log has both one after the other
    std::set<double> totals = {};
    double carried = 0;
    std::map<PeerId, double> own_samples = {};
    std::set<std::string> parameters = {};
  };

  struct Writer {
    Round last = 0;
    std::string head = {};
    std::map<Round, std::string> not_applied = {};  ///< digests of records
  };

  /// Parameters of a state that was taken from others.
  struct Taken {
    PeerId writer;
    Round round = 0;
    std::string parameters;
  };

  using Lineage = std::vector<std::string>;  ///< digests, the newest first

  void see_commit(const monitor::LogEntry& entry, const event::Commit& commit);
  void see_parameters(const monitor::LogEntry& entry, const std::string& digest);
  std::string parent_of(const Written& record) const;
  Lineage lineage() const;
  void judge_samples(const Lineage& lineage, Findings& findings) const;
  void judge_given_up(const std::set<std::string>& history, Findings& findings) const;
  void judge_parameters(Findings& findings) const;

  std::uint64_t samples_of_round_;
  std::map<std::string, Written> records_;  ///< by digest
  std::map<Round, std::set<std::string>> by_round_;
  std::map<PeerId, Writer> writers_;
  std::set<Round> unlogged_;  ///< somebody's log says that it lacks lines of these
  std::vector<Taken> taken_;
  std::string newest_;  ///< digest of the record that was seen last
  std::vector<std::string> faults_;
};

}  // namespace tw::soak
