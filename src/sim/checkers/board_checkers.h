// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/fold/journal.h"
#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// I10: the cost on the board equals, within 0.1 %, price x uptime of each process (by the times of its
/// events) plus tariff x bytes given to its port, as the network counts them.
class CostAddsUp final : public Checker {
 public:
  explicit CostAddsUp(const Rules& rules);

  void on_traffic(PeerId peer, const std::map<std::string, std::uint64_t>& given) override;
  void on_event(PeerId peer, const world::Event& event) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  struct Meter {
    std::string site;
    Instant begun{}, last{};
    std::map<std::string, std::uint64_t> given;  ///< by this process, by site
  };

  void add_process(const Meter& meter);

  Rules rules_;
  monitor::Journal journal_;
  std::map<PeerId, Meter> meters_;
  double machines_usd_ = 0, egress_usd_ = 0;  ///< of processes that have ended
};

/// I3: in the logs of a complete run, the samples of its records and those that rounds left to the next one
/// are as many target batches as it has rounds.
class ReportAddsUp final : public Checker {
 public:
  ReportAddsUp(const Rules& rules, const Ledger& ledger) : Checker("I3"), rules_(rules), ledger_(ledger) {}

  void on_event(PeerId peer, const world::Event& event) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  Rules rules_;
  const Ledger& ledger_;
  std::map<PeerId, std::vector<monitor::LogEntry>> logs_;
};

/// I11: a board from the status messages of the peers equals a board from the logs of all, for each peer at
/// the moment it reports. A peer reports at each of its commits and at every 64th event of the run. In the
/// end all have reported for the last time, and both boards have the same rounds, ledger and money.
class BoardsAgree final : public Checker {
 public:
  explicit BoardsAgree(const Rules& rules);

  void on_event(PeerId peer, const world::Event& event) override;
  void on_end(std::span<const Survivor> survivors) override;

 private:
  /// Reports of several peers, and of those that are counted out: boards may count them in another way.
  struct Doubts {
    std::set<PeerId> lost;                                ///< counted out by any peer at any time
    std::map<std::pair<Round, PeerId>, PeerId> reissued;  ///< that reported it
    std::map<std::uint64_t, PeerId> skipped;
    std::set<std::pair<Round, PeerId>> committed, told_of_lost;  ///< by whom
    bool of_ledger = false;
    std::set<Round> of_round;
    std::set<Round> given_up;  ///< by the only peer that had committed it: its process was another one
    /// By round. Two: each is of a history of its own, and peers reported both.
    std::map<Round, std::set<std::string>> records;
    std::map<std::pair<Round, PeerId>, std::set<PeerId>> lost_by;  ///< by round and by whom
    std::set<Round> cut;  ///< a peer lost more than fit into its report
    /// From the first minority decision on, one side may count out what belongs to the other.
    Round parted = std::numeric_limits<Round>::max();
  };

  void note_doubts(PeerId peer, const world::Event& event);
  void note_given_up(PeerId peer, Round after);
  void tell(PeerId peer, double now_s);
  void compare(PeerId told, const monitor::Board& live, const monitor::Board& logs);
  void compare_whole(const monitor::Board& live, const monitor::Board& logs);
  void compare_rounds(const monitor::Board& live, const monitor::Board& logs);

  static constexpr std::uint64_t kEventsPerStatus = 64;

  Rules rules_;
  monitor::Journal logs_, live_;
  std::map<PeerId, monitor::Journal> own_;
  std::map<PeerId, double> last_s_;  ///< of its events
  Doubts doubts_;
  std::uint64_t events_ = 0;
  bool rewound_ = false;  ///< rounds were repeated: a peer may not know which of its own count
};

}  // namespace tw::sim
