// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "monitor/event_log_json.h"

namespace tw::soak {

/// Judges the event logs of one run as they are written: one history, the same parameters on all peers, the
/// samples of each round exact. The run never loses its majority, so a peer that decides without one has left
/// the history, with all that it decides until it takes the state of others; what the majority decided must
/// stand for ever.
class HistoryJudge {
 public:
  /// Samples of a round that loses nobody.
  explicit HistoryJudge(std::uint64_t samples_of_round) : samples_of_round_(samples_of_round) {}

  /// The entries of one writer in their order.
  void see(const LogEntry& entry);

  /// Sums of all rounds; once, when all logs are at their end.
  void judge_sums();

  Round newest() const { return rounds_.empty() ? 0 : rounds_.rbegin()->first; }

  std::uint64_t samples() const;

  /// Members as the newest record has them.
  std::size_t members() const;

  /// Commits that their writers gave up, since they were decided without a majority.
  std::size_t given_up() const { return given_up_; }

  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Facts {
    std::set<std::string> records, parameters;
    std::set<double> totals;
    std::map<PeerId, double> own_samples;
    double carried = 0;
    double members = 0;
  };

  struct Writer {
    Round last = 0;
    bool alone = false;            ///< since it decided without a majority
    std::set<Round> without = {};  ///< rounds that it decided alone and has not applied yet
  };

  void see_commit(const LogEntry& entry);
  void see_parameters(const LogEntry& entry);
  void find_fault(std::string what);

  std::uint64_t samples_of_round_;
  std::map<Round, Facts> rounds_;
  std::map<PeerId, Writer> writers_;
  std::size_t given_up_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace tw::soak
